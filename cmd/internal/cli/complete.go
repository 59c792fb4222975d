package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/docgen"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// completionWait bounds how long a shell waits for what it completes.
const completionWait = 3 * time.Second

// manifestEndings are those of files that commands read.
var manifestEndings = []string{"yaml", "yml", "json"}

// plainWord is what shells take as it is. Files of others name fields and branches: what a shell would run is not offered.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/@:+-]*$`)

// completeFiles completes files with manifests, and folders.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return manifestEndings, cobra.ShellCompDirectiveFilterFileExt
}

// fileFlags has shells complete files with manifests for flags.
func fileFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		Must(cmd.RegisterFlagCompletionFunc(name, completeFiles))
	}
}

// completeLines completes what a program prints, a word in each line.
func completeLines(program string, args ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		var words []string
		text, err := output(ctx, "", program, args...)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for line := range strings.Lines(string(text)) {
			words = append(words, strings.TrimSpace(line))
		}
		return offered(words, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeContext completes the contexts of the kubeconfig.
func completeContext(cmd *cobra.Command) {
	Must(cmd.RegisterFlagCompletionFunc("context", completeLines("kubectl", "config", "get-contexts", "-o", "name")))
}

// offered keeps the words, with their descriptions, that begin as the user has.
func offered(words []string, begun string) []string {
	words = slices.DeleteFunc(words, func(w string) bool {
		name, _, _ := strings.Cut(w, "\t")
		return !strings.HasPrefix(name, begun) || !plainWord.MatchString(name)
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// completeExplain completes the CRD and the path of a field.
func (a *App) completeExplain(o *explainOptions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		if slices.Contains(append(slices.Clone(o.crds), args...), manifest.Stdin) || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) == 1 {
			return a.completePath(ctx, args[0], "", begun, o)
		}
		list, err := a.candidates(ctx, o)
		if err != nil || len(list) == 0 {
			return completeFiles(cmd, args, begun)
		}
		if words := offered(crdWords(list), begun); len(words) > 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
		if name, path, dotted := strings.Cut(begun, "."); dotted {
			if words, directive := a.completePath(ctx, name, name+".", path, o); len(words) > 0 {
				return words, directive
			}
			var names []string
			for _, d := range list {
				names = append(names, d.Name)
			}
			if names = offered(names, begun); len(names) > 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
		}
		return completeFiles(cmd, args, begun)
	}
}

// candidates are the CRDs of --crd, or of the settings.
func (a *App) candidates(ctx context.Context, o *explainOptions) ([]*crd.CRD, error) {
	crds, err := a.crdPaths(o.crds)
	if err != nil || len(crds) == 0 {
		return nil, err
	}
	return a.parsedCRDs(ctx, crds)
}

// crdWords are the names of CRDs: the plural or, if several have it, the full name.
func crdWords(list []*crd.CRD) (words []string) {
	count := map[string]int{}
	for _, d := range list {
		count[d.Plural]++
	}
	for _, d := range list {
		if about := "\t" + d.Kind + " of " + d.Group; count[d.Plural] == 1 {
			words = append(words, d.Plural+about)
		} else {
			words = append(words, d.Name+about)
		}
	}
	return words
}

// completePath completes the path of a field of a CRD. What comes before it in the word stays.
func (a *App) completePath(ctx context.Context, name, before, begun string, o *explainOptions) ([]string, cobra.ShellCompDirective) {
	at := strings.LastIndexByte(begun, '.') + 1
	head := begun[:at]
	if before != "" {
		name += "." + head // the name may have points of its own
	}
	d, path, err := a.explained(ctx, name, *o)
	if err != nil || len(d.Versions) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if before == "" {
		path = append(path, pathSteps(head)...)
	}
	v := docgen.Preferred(d)
	if o.version != "" {
		v = d.Version(o.version)
	}
	if v == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	fields, err := docgen.Fields(d, v, path)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, f := range fields {
		if strings.HasPrefix(f.Name, begun[at:]) {
			words = append(words, before+head+f.Name+"\t"+strings.TrimSpace("<"+f.Type+"> "+f.Description))
			if !f.Leaf {
				directive |= cobra.ShellCompDirectiveNoSpace // the path may go on
			}
		}
	}
	return offered(words, before+begun), directive
}

// completeVersion completes the versions of the CRDs that the arguments name.
func (a *App) completeVersion(crds func(ctx context.Context, args []string) ([]*crd.CRD, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		var words []string
		if len(args) > 0 && !slices.Contains(args, manifest.Stdin) {
			list, err := crds(ctx, args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, d := range list {
				for i := range d.Versions {
					words = append(words, d.Versions[i].Name)
				}
			}
		}
		return offered(words, begun), cobra.ShellCompDirectiveNoFileComp
	}
}
