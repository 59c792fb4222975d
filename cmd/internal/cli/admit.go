package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/splice"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/object"
)

type admitOptions struct {
	crds          []string
	format        string
	diff          bool
	ignoreMissing bool
	steps         steps
	validate      bool
}

func newPrune(a *App) *cobra.Command {
	return a.newAdmission(admitOptions{steps: steps{prune: true}}, &cobra.Command{
		Use:   "prune --crd FILE|DIR... FILE|DIR|-...",
		Short: "Print objects without the fields that an API server prunes",
		Long: `Prune prints objects without the values that an API server removes before it
stores them: fields that the schema of their CRD does not specify, nulls that are
not allowed, and unknown or malformed metadata. It does not fill in defaults.`,
		Example: a.Example(`
  # Show what is pruned, line by line
  %[1]s prune --crd crds/ web.yaml --diff

  # Print the pruned object
  %[1]s prune --crd crds/ web.yaml`),
	})
}

func newDefault(a *App) *cobra.Command {
	return a.newAdmission(admitOptions{steps: steps{fill: true}}, &cobra.Command{
		Use:   "default --crd FILE|DIR... FILE|DIR|-...",
		Short: "Print objects with their defaults filled in",
		Long: `Default prints objects with the defaults that an API server fills in: for missing
fields, and for nulls that are not allowed. It does not prune.`,
		Example: a.Example(`
  # Show which defaults apply, and where
  %[1]s default --crd crds/ web.yaml --diff

  # Print the object with its defaults
  %[1]s default --crd crds/ web.yaml -o json`),
	})
}

func newAdmit(a *App) *cobra.Command {
	return a.newAdmission(admitOptions{steps: steps{true, true}, validate: true}, &cobra.Command{
		Use:   "admit --crd FILE|DIR... FILE|DIR|-...",
		Short: "Print objects as an API server stores them",
		Long: `Admit prints objects as an API server stores them on create: pruned, with
defaults, and without status if the CRD has the status subresource. It does not
add the fields that only the server sets, such as uid, creationTimestamp and
managedFields.

If the API server would refuse an object, admit reports it on standard error and
prints nothing. It prunes unknown fields without an error; validate reports them.`,
		Example: a.Example(`
  # Print what an API server stores
  %[1]s admit --crd crds/ web.yaml

  # Show the changes and their reasons
  %[1]s admit --crd crds/ web.yaml --diff`),
	})
}

// newAdmission completes one of the commands that print objects.
func (a *App) newAdmission(o admitOptions, cmd *cobra.Command) *cobra.Command {
	cmd.Long += `

Objects of YAML files keep their comments, order and formatting, unless a key
occurs twice or a change is inside an alias. Documents without a custom resource
are printed unchanged. With --diff the exit code is 1 if anything changes.`
	takesFiles(cmd, func(ctx context.Context, files []string) error { return a.admit(ctx, files, o) })
	crdFlag(cmd, &o.crds)
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "yaml", "output format: yaml or json")
	flags.BoolVar(&o.diff, "diff", false, "show the changes and their reasons, with the lines of the files")
	flags.BoolVar(&o.ignoreMissing, "ignore-missing", false, "do not change objects whose CRD is not given")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *App) admit(ctx context.Context, files []string, o admitOptions) error {
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
	run := &admission{options: o}
	if run.resources, err = a.resources(ctx, o.crds, files, s); err != nil {
		return err
	}
	expanded, err := s.expand(ctx, files)
	if err != nil {
		return err
	}
	out := &printout{app: a, options: o, color: color}
	for _, path := range expanded {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := manifest.Open(path, a.In)
		if err != nil {
			return err
		}
		if err := out.file(run.file(f)); err != nil {
			return err
		}
	}
	if len(run.found.subjects)+len(run.found.diagnostics) == 0 && !o.ignoreMissing {
		return fmt.Errorf("no object of a custom resource in %s", strings.Join(files, ", "))
	}
	return out.finish(&run.found, s)
}

// admission takes objects as a server does.
type admission struct {
	options   admitOptions
	resources resources
	found     findings
}

// admitted is a file and what becomes of its objects.
type admitted struct {
	file    *manifest.File
	objects []admittedObject
	read    int // bytes of the lines that line has looked at
}

type admittedObject struct {
	document    *manifest.Document
	json        []byte // as it is stored, in the order of the file
	alterations []alteration
	repeated    []int // keys in the document that have appeared before: no edit can tell them apart
}

func (r *admission) file(f *manifest.File) *admitted {
	result := &admitted{file: f}
	objects, err := manifest.Objects(f)
	if err != nil {
		r.found.add(SyntaxDiagnostic(f, err))
	}
	for _, object := range objects {
		result.objects = append(result.objects, r.object(object))
	}
	return result
}

func (r *admission) object(d *manifest.Document) admittedObject {
	meta := typeMetaOf(d)
	same := admittedObject{document: d, json: d.JSON}
	if meta.isCRD() {
		return same
	}
	out := &result{document: d, object: meta.object(), into: &r.found}
	version, unknown := r.resources.find(meta)
	if version == nil {
		v := validator{options: validateOptions{ignoreMissing: r.options.ignoreMissing}}
		v.unknown(unknown, out)
		return same
	}
	r.found.subject(d, out.object)
	if !version.usable(out) {
		return same
	}
	w, ok := version.decode(d.JSON, out)
	if !ok {
		return same
	}
	stored := w.object
	if r.options.validate {
		stored = w.stored()
		w.validate(out)
	}
	c, err := compare(d.JSON, stored.JSON(), r.options.steps, w.changes)
	if err != nil {
		out.unreadable(err)
		return same
	}
	same.json, same.alterations, same.repeated = c.out, c.alterations, c.repeated
	return same
}

// stored returns a new object as a server stores it, without what only the server sets.
func (w *write) stored() *object.Object {
	o := w.object.DeepCopy()
	if w.version.kind.Status {
		o.SetMember("status", nil)
	}
	if !w.version.kind.Namespaced && o.GetNamespace() != "" {
		o.SetNamespace("")
	}
	return o
}

// text returns the text of the file with the alterations made. It reports false
// if they cannot be made in the text.
func (f *admitted) text() ([]byte, bool) {
	edits := make(map[int][]splice.Edit) // of each document
	for _, o := range f.objects {
		if len(o.repeated) > 0 {
			return nil, false
		}
		for _, a := range o.alterations {
			e := a.Edit
			e.Pointer = o.document.List + a.Pointer
			edits[o.document.Index] = append(edits[o.document.Index], e)
		}
	}
	text, err := splice.ApplyAll(f.file.Text, edits)
	return text, err == nil
}

func (f *admitted) altered() bool {
	for _, o := range f.objects {
		if len(o.alterations)+len(o.repeated) > 0 {
			return true
		}
	}
	return false
}

// printout prints objects, or what changes of them.
type printout struct {
	app     *App
	options admitOptions
	color   bool
	body    bytes.Buffer
	altered bool
}

func (p *printout) file(f *admitted) error {
	p.altered = p.altered || f.altered()
	switch {
	case p.options.diff:
		p.diff(f)
		return nil
	case p.options.format == "json":
		for _, o := range f.objects {
			if err := indentJSON(&p.body, o.json); err != nil {
				return err
			}
		}
		return nil
	}
	if !isJSON(f.file.Text) {
		if text, ok := f.text(); ok {
			p.separate()
			p.body.Write(text)
			return nil
		}
	}
	for _, o := range f.objects {
		text, err := yamlOf(o.json)
		if err != nil {
			return err
		}
		p.separate()
		p.body.Write(text)
	}
	return nil
}

// separate begins another document.
func (p *printout) separate() {
	if b := p.body.Bytes(); len(b) > 0 {
		if !bytes.HasSuffix(b, []byte("\n")) {
			p.body.WriteByte('\n')
		}
		p.body.WriteString("---\n")
	}
}

// finish prints what was found on standard error and, unless that is an error,
// the objects.
func (p *printout) finish(found *findings, s *settings) error {
	r := &report.Report{Subjects: found.subjects, Diagnostics: found.diagnostics, Noun: "object"}
	s.choose(r, finding.Warning)
	if len(r.Diagnostics) > 0 {
		color := p.color && IsTerminal(p.app.Err)
		if err := r.Write(p.app.Err, "text", report.Options{Color: color}); err != nil {
			return err
		}
	}
	refused := r.Count(finding.Error) > 0
	if !refused || p.options.diff {
		if _, err := p.app.Out.Write(p.body.Bytes()); err != nil {
			return err
		}
	}
	if refused || p.options.diff && p.altered {
		return errFindings
	}
	return nil
}
