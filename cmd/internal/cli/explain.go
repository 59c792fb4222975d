package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/docgen"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/manifest"
)

type explainOptions struct {
	crds      []string
	version   string
	recursive bool
}

func newExplain(a *App) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain CRD [PATH]",
		Short: "Explain a field of a CRD: its type, description and constraints",
		Long: `Explain shows the description of a field, as kubectl explain does, and its
constraints: defaults, bounds, patterns, enums and CEL rules. It needs no cluster.

CRD is a file with a CustomResourceDefinition, or the kind, plural, singular,
short or full name of one in the files of --crd or of the settings. PATH is the path of a field. It
has no step for the items of a list or the values of a map.`,
		Example: a.Example(`
  # Explain the fields of a spec
  %[1]s explain crd.yaml spec

  # Find the CRD by name, as kubectl does
  %[1]s explain --crd config/crd crontabs.spec.image

  # List all fields
  %[1]s explain crd.yaml --recursive`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return fmt.Errorf("explain takes a CRD and the path of a field\nSee '%s --help'", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), args, o) },
	}
	crdFlag(cmd, &o.crds)
	cmd.Flags().StringVar(&o.version, "version", "", "the version to explain (default: the stored one, if it is served)")
	cmd.Flags().BoolVar(&o.recursive, "recursive", false, "list all fields below, without descriptions")
	cmd.Flags().Lookup("crd").Usage = "file, folder or pattern with CRDs, to find the CRD in by name (default: crds of the settings)"
	cmd.ValidArgsFunction = a.completeExplain(&o)
	Must(cmd.RegisterFlagCompletionFunc("version", a.completeVersion(func(ctx context.Context, args []string) ([]*crd.CRD, error) {
		d, _, err := a.explained(ctx, args[0], o)
		return []*crd.CRD{d}, err
	})))
	return cmd
}

func (a *App) explain(ctx context.Context, args []string, o explainOptions) error {
	d, path, err := a.explained(ctx, args[0], o)
	if err != nil {
		return err
	}
	if len(args) > 1 {
		path = append(path, pathSteps(args[1])...)
		// Those used to kubectl name the resource in the path.
		if len(path) > 0 && named(d, path[0]) && !hasField(d, path[0]) {
			path = path[1:]
		}
	}
	v := docgen.Preferred(d)
	if o.version != "" {
		v = d.Version(o.version)
	}
	switch {
	case len(d.Versions) == 0:
		return fmt.Errorf("%s has no versions", d.Name)
	case v == nil:
		return fmt.Errorf("%s has no version %q: it has %s", d.Name, o.version, versionNames(d))
	}
	if err := docgen.Explain(a.Out, d, v, path, docgen.Options{Recursive: o.recursive}); err != nil {
		return fmt.Errorf("%s %s/%s: %w", d.Kind, d.Group, v.Name, err)
	}
	return nil
}

// explained finds the CRD that is meant, and the path that is written
// behind its name.
func (a *App) explained(ctx context.Context, name string, o explainOptions) (*crd.CRD, []string, error) {
	if _, missing := os.Stat(name); missing != nil && name != manifest.Stdin {
		var err error
		if o.crds, err = a.crdPaths(o.crds); err != nil {
			return nil, nil, err
		}
		if len(o.crds) == 0 {
			return nil, nil, fmt.Errorf("there is no file %q: name the file of the CRD, or the files to find it in with --crd", name)
		}
	}
	if len(o.crds) == 0 {
		list, err := a.parsedCRDs(ctx, []string{name})
		if err != nil {
			return nil, nil, err
		}
		if len(list) > 1 {
			return nil, nil, fmt.Errorf("there are %d CRDs in %s: choose one, as in 'explain --crd %s %s'", len(list), name, name, list[0].Plural)
		}
		return list[0], nil, nil
	}
	list, err := a.parsedCRDs(ctx, o.crds)
	if err != nil {
		return nil, nil, err
	}
	steps := pathSteps(name)
	for n := len(steps); n > 0; n-- {
		var found []*crd.CRD
		for _, d := range list {
			if named(d, strings.Join(steps[:n], ".")) {
				found = append(found, d)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], steps[n:], nil
		default:
			return nil, nil, fmt.Errorf("%q may be %s or %s: use the full name", strings.Join(steps[:n], "."), found[0].Name, found[1].Name)
		}
	}
	var names []string
	for _, d := range list {
		names = append(append(names, d.Kind, d.Plural, d.Singular), d.ShortNames...)
	}
	hint := ""
	if len(steps) > 0 {
		if near := nearest(steps[0], names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
	}
	return nil, nil, fmt.Errorf("there is no CRD called %q in %s%s", name, strings.Join(o.crds, ", "), hint)
}

// crdPaths returns the files of --crd or, without it, those of the settings.
func (a *App) crdPaths(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	return s.crds(), nil
}

// named reports whether people call the resource by name.
func named(d *crd.CRD, name string) bool {
	for _, known := range append([]string{d.Kind, d.Plural, d.Singular, d.Name}, d.ShortNames...) {
		if known != "" && strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// hasField reports whether objects of the kind have a field called name.
func hasField(d *crd.CRD, name string) bool {
	v := docgen.Preferred(d)
	return v != nil && docgen.Explain(io.Discard, d, v, []string{name}, docgen.Options{}) == nil
}

// indices are steps into lists, which field paths do without.
var indices = regexp.MustCompile(`\[[^\]]*\]`)

// pathSteps splits a path such as .spec.containers[0].name.
func pathSteps(text string) []string {
	return strings.FieldsFunc(indices.ReplaceAllString(text, ""), func(r rune) bool { return r == '.' })
}
