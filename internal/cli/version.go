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
		return fmt.Errorf("--output is text, json or yaml, not %q", format)
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

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
