package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/internal/object"
)

type convertOptions struct {
	crds          []string
	to            string
	format        string
	ignoreMissing bool
	fuzz          bool
	infer         bool
	objects       int
	seed          uint64
	minutes       float64
}

func newConvert(a *App) *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert --to VERSION --crd FILE|DIR... FILE|DIR|-...",
		Short: "Convert objects to another version by the rules in their CRD",
		Long: `Convert prints objects in another version of their CRD. It converts by the rules in
the annotation conversion.espalier.dev/rules of the CRD. If the CRD has no rules and
the conversion strategy None, only apiVersion changes. Then it prunes what the other
version's schema does not specify, as an API server does. It fills in no defaults.

With --fuzz it tests the rules of CRDs with random objects of each version: an object
that is converted and converted back is the same, the other version prunes nothing,
and edits of the converted object are kept. It prints small objects that show what is
wrong. The exit code is 1 if anything is.

With --infer it proposes rules between two versions: those in one CRD, or the last
version of an old CRD and the last of a new one. It says how sure it is of each. What
no rule converts, the proposed rules preserve, so that they lose nothing. Read them,
and put them into the CRD.`,
		Example: a.Example(`
  # Convert an object
  %[1]s convert --to v1 --crd crd.yaml web.yaml

  # Test the rules of a CRD
  %[1]s convert --fuzz --crd crd.yaml

  # Propose rules
  %[1]s convert --infer crd.yaml`),
	}
	var named []string
	flags := cmd.Flags()
	flags.StringSliceVarP(&named, "filename", "f", nil, "file, folder, pattern or - for standard input; the same as an argument")
	crdFlag(cmd, &o.crds)
	flags.StringVar(&o.to, "to", "", "version to convert to")
	flags.StringVarP(&o.format, "output", "o", "yaml", "output format: yaml or json")
	flags.BoolVar(&o.ignoreMissing, "ignore-missing", false, "do not change objects whose CRD is not given")
	flags.BoolVar(&o.fuzz, "fuzz", false, "test the rules of the CRDs with random objects")
	flags.IntVar(&o.objects, "objects", 1000, "random objects of each version, with --fuzz")
	flags.Uint64Var(&o.seed, "seed", 1, "number that the random objects are made from, with --fuzz")
	flags.Float64Var(&o.minutes, "minutes", 0, "end --fuzz after this time; 0 for no limit")
	flags.BoolVar(&o.infer, "infer", false, "propose rules between two versions")
	cmd.MarkFlagsMutuallyExclusive("to", "fuzz", "infer")
	cmd.ValidArgsFunction = completeFiles
	fileFlags(cmd, "filename")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	Must(cmd.RegisterFlagCompletionFunc("to", cobra.NoFileCompletions))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files := append(slices.Clone(args), named...)
		switch {
		case o.fuzz:
			return a.fuzzRules(cmd.Context(), files, o)
		case o.infer:
			return a.inferRules(cmd.Context(), files, o)
		case len(files) == 0:
			return fmt.Errorf("no files given: name files, folders or - for standard input\nSee '%s --help'", cmd.CommandPath())
		case o.to == "":
			return fmt.Errorf("say which version to convert to, with --to\nSee '%s --help'", cmd.CommandPath())
		}
		return a.convert(cmd.Context(), files, o)
	}
	return cmd
}

// convert prints the objects of files in another version.
func (a *App) convert(ctx context.Context, files []string, o convertOptions) error {
	if o.format != "yaml" && o.format != "json" {
		return fmt.Errorf("there is no output format %q for objects: use yaml or json", o.format)
	}
	color, err := a.Colored()
	if err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	run := &conversions{options: o, by: map[*resource]*converter{}}
	if run.resources, err = a.resources(ctx, o.crds, files, s); err != nil {
		return err
	}
	if !run.resources.haveVersion(o.to) {
		return fmt.Errorf("no CRD has a version %q: --to must be one of %s", o.to, strings.Join(run.resources.versionNames(), ", "))
	}
	expanded, err := s.expand(ctx, files)
	if err != nil {
		return err
	}
	out := &printout{app: a, options: admitOptions{format: o.format}, color: color}
	for _, path := range expanded {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := manifest.Open(path, a.In)
		if err != nil {
			return err
		}
		if err := run.file(f, out); err != nil {
			return err
		}
	}
	if len(run.found.subjects)+len(run.found.diagnostics) == 0 && !o.ignoreMissing {
		return fmt.Errorf("no object of a custom resource in %s", strings.Join(files, ", "))
	}
	return out.finish(&run.found, s)
}

func (all resources) haveVersion(name string) bool { return slices.Contains(all.versionNames(), name) }

// versionNames lists the versions of all CRDs.
func (all resources) versionNames() []string {
	var names []string
	for _, r := range all {
		for name := range r.versions {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// conversions convert objects of several CRDs.
type conversions struct {
	options   convertOptions
	resources resources
	by        map[*resource]*converter
	found     findings
}

// file converts the objects of a file and prints them.
func (c *conversions) file(f *manifest.File, out *printout) error {
	objects, err := manifest.Objects(f)
	for _, err := range manifest.Errors(err) {
		c.found.add(SyntaxDiagnostic(f, err))
	}
	for _, d := range objects {
		converted := c.object(d)
		if out.options.format == "json" {
			if err := indentJSON(&out.body, converted); err != nil {
				return err
			}
			continue
		}
		text, err := yamlOf(converted)
		if err != nil {
			return err
		}
		out.separate()
		out.body.Write(text)
	}
	return nil
}

// object returns what a document is in the version; one that is no custom resource, or is refused, unchanged.
func (c *conversions) object(d *manifest.Document) []byte {
	meta := typeMetaOf(d)
	if meta.isCRD() {
		return d.JSON
	}
	out := &result{document: d, object: meta.object(), into: &c.found}
	r := c.resources[groupKind{meta.group(), meta.kind}]
	from, unknown := c.resources.find(meta)
	if from == nil && r != nil && unknown.Check == idVersionUnserved {
		from = r.versions[meta.version()] // storage may hold it
	}
	if from == nil {
		v := validator{options: validateOptions{ignoreMissing: c.options.ignoreMissing}}
		v.unknown(unknown, out)
		return d.JSON
	}
	c.found.subject(d, out.object)
	to, ok := r.versions[c.options.to]
	if !ok {
		out.add(report.Diagnostic{Check: idVersionUnknown, Pointer: "/apiVersion", Place: out.of("/apiVersion"),
			Message: fmt.Sprintf("%s has no version %q to convert to", r.crd.Name, c.options.to), Fix: "its versions are " + strings.Join(resources{{}: r}.versionNames(), ", ")})
		return d.JSON
	}
	if !from.usable(out) || !to.usable(out) {
		return d.JSON
	}
	by, known := c.by[r]
	if !known {
		by = newConverter(r)
		c.by[r] = by
	}
	converted, err := by.convert(d.JSON, from, to)
	if err != nil {
		out.unconverted(err)
		return d.JSON
	}
	return converted
}

// unconverted reports an object that cannot be converted.
func (v *result) unconverted(err error) {
	var fault *rulesError
	d := report.Diagnostic{Check: idConversion, Message: err.Error(), Pointer: "/apiVersion", Place: v.of("/apiVersion")}
	if errors.As(err, &fault) {
		d.Notes, d.Fix = fault.notes, fault.fix
	}
	v.add(d)
}

// convert returns an object in another version, as a server reads it.
func (c *converter) convert(data []byte, from, to *compiled) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	o, err := object.FromJSON(canonicalJSON(data))
	if err != nil {
		return nil, err
	}
	if o, err = from.schema.DecodeConverted(o); err != nil {
		return nil, err
	}
	converted, err := c.version(o.JSON(), to.version.Name)
	if err != nil {
		return nil, err
	}
	if o, err = object.FromJSON(converted); err != nil {
		return nil, err
	}
	if o, err = to.schema.DecodeConverted(o); err != nil {
		return nil, err
	}
	return o.JSON(), nil
}
