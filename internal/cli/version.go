package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// about is what the program knows of itself.
type about struct {
	Version string `json:"version"`
	// Commit and Date are of the source; Modified, that it was not just that.
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Kubernetes is the release whose behaviour the program has.
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func newVersion(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell what this program is made of",
		Long: `Version tells the version of the program, the commit and its date, the release of
Kubernetes whose behaviour it has, and what it was built with and for.`,
		Example: a.example(`
  %[1]s version
  %[1]s version -o json`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.version(format) },
	}
	formats := []string{"text", "json", "yaml"}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output format: "+strings.Join(formats, ", "))
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) version(format string) error {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	this := aboutBuild(build)
	var text []byte
	var err error
	switch format {
	case "text":
		text = []byte(this.String())
	case "json":
		text, err = json.MarshalIndent(this, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(this)
	default:
		return fmt.Errorf("--output is text, json or yaml, not %q", format)
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// aboutBuild reads what the Go command has written into the program.
func aboutBuild(build *debug.BuildInfo) about {
	this := about{Version: Version(), Kubernetes: kubernetesOf(build), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			this.Commit = setting.Value
		case "vcs.time":
			this.Date = setting.Value
		case "vcs.modified":
			this.Modified = setting.Value == "true"
		}
	}
	return this
}

// kubernetesOf is the release that the libraries belong to: k8s.io/apiserver v0.37.2
// is of Kubernetes v1.37.2.
func kubernetesOf(build *debug.BuildInfo) string {
	for _, dependency := range build.Deps {
		if release, ok := strings.CutPrefix(dependency.Version, "v0."); ok && dependency.Path == "k8s.io/apiserver" {
			return "v1." + release
		}
	}
	return "unknown"
}

// String is for people.
func (b about) String() string {
	commit := b.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case b.Modified:
		commit += ", and changes"
	}
	date := b.Date
	if date == "" {
		date = "unknown"
	}
	return fmt.Sprintf("version     %s\ncommit      %s\ndate        %s\nkubernetes  %s\ngo          %s\nplatform    %s\n",
		b.Version, commit, date, b.Kubernetes, b.Go, b.Platform)
}
