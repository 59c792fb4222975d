package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/build"
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

// NewVersion makes the command version.
func NewVersion(a *App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Version prints the version of the program, its commit and date, the Kubernetes
release whose behaviour it implements, the Go version and the platform.`,
		Example: a.Example(`
  %[1]s version
  %[1]s version -o json`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.version(format) },
	}
	formats := []string{"text", "json", "yaml"}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output format: "+strings.Join(formats, ", "))
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *App) version(format string) error {
	this := aboutBuild(build.This())
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
		return fmt.Errorf("--output must be text, json or yaml, not %q", format)
	}
	if err != nil {
		return err
	}
	_, err = a.Out.Write(text)
	return err
}

// Kubernetes returns the release whose behaviour the program has.
func Kubernetes() string { return aboutBuild(build.This()).Kubernetes }

// aboutBuild adds what the Go command has written into the program.
func aboutBuild(b build.Info) about {
	return about{
		Version: Version(), Commit: b.Commit, Date: b.Date, Modified: b.Modified,
		Kubernetes: cmp.Or(b.Kubernetes, "unknown"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// String is for people.
func (b about) String() string {
	commit := cmp.Or(b.Commit, "unknown")
	if b.Commit != "" && b.Modified {
		commit += ", and changes"
	}
	return fmt.Sprintf("version     %s\ncommit      %s\ndate        %s\nkubernetes  %s\ngo          %s\nplatform    %s\n",
		b.Version, commit, cmp.Or(b.Date, "unknown"), b.Kubernetes, b.Go, b.Platform)
}
