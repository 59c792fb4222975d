package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/internal/report"
	"github.com/espalier-dev/espalier/internal/splice"
)

type admitOptions struct {
	files         []string
	crds          []string
	format        string
	diff          bool
	ignoreMissing bool
	steps         steps
	validate      bool
}

func newPrune(a *app) *cobra.Command {
	return a.newAdmission(admitOptions{steps: steps{prune: true}}, &cobra.Command{
		Use:   "prune --crd FILE|DIR... FILE|DIR|-...",
		Short: "What a server keeps of the objects you send",
		Long: `Prune prints objects without what a server removes from them before it stores
them: fields that the schema of their CRD does not specify, nulls that are not
allowed, and what metadata cannot hold. Defaults are not filled in.`,
		Example: a.example(`
  # What would be lost, line by line
  %[1]s prune --crd crds/ web.yaml --diff

  # The object without it
  %[1]s prune --crd crds/ web.yaml`),
	})
}

func newDefault(a *app) *cobra.Command {
	return a.newAdmission(admitOptions{steps: steps{fill: true}}, &cobra.Command{
		Use:   "default --crd FILE|DIR... FILE|DIR|-...",
		Short: "The objects you send with defaults filled in",
		Long: `Default prints objects with the defaults that a server fills in: for fields that
are missing, and for nulls that are not allowed. Nothing is pruned.`,
		Example: a.example(`
  # Which defaults apply, and where
  %[1]s default --crd crds/ web.yaml --diff

  # The object with them
  %[1]s default --crd crds/ web.yaml -o json`),
	})
}

func newAdmit(a *app) *cobra.Command {
	return a.newAdmission(admitOptions{steps: steps{true, true}, validate: true}, &cobra.Command{
		Use:   "admit --crd FILE|DIR... FILE|DIR|-...",
		Short: "The objects as a server would store them",
		Long: `Admit prints objects as a server would store them when they are created: pruned,
with defaults, and without a status that is not theirs to set. What only the
server knows is not there: uid, creationTimestamp, managedFields and the like.

Objects that the server would refuse are reported on standard error, and nothing
is printed. Unknown fields are pruned and no reason to refuse an object: see
"validate" for that.`,
		Example: a.example(`
  # What a server would store
  %[1]s admit --crd crds/ web.yaml

  # What it would change, and why
  %[1]s admit --crd crds/ web.yaml --diff`),
	})
}

// newAdmission completes one of the commands that print objects.
func (a *app) newAdmission(o admitOptions, cmd *cobra.Command) *cobra.Command {
	cmd.Long += `

Objects of YAML files keep their comments, order and formatting, except where
keys appear twice or aliases lead to a change. Documents of other kinds stay as
they are. With --diff the exit code is 1 if anything changes.`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, err := paths(cmd, args, o.files)
		if err != nil {
			return err
		}
		return a.admit(cmd.Context(), files, o)
	}
	filenameFlag(cmd, &o.files)
	crdFlag(cmd, &o.crds)
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "yaml", "output format: yaml or json")
	flags.BoolVar(&o.diff, "diff", false, "show what changes and why, on the lines of the files")
	flags.BoolVar(&o.ignoreMissing, "ignore-missing", false, "leave objects whose CRD is not given as they are")
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) admit(ctx context.Context, files []string, o admitOptions) error {
	if o.format != "yaml" && o.format != "json" {
		return fmt.Errorf("there is no output format %q for objects: use yaml or json", o.format)
	}
	color, err := a.colored()
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
	expanded, err := manifest.Expand(files, s.excludes)
	if err != nil {
		return err
	}
	out := &printout{app: a, options: o, color: color}
	for _, path := range expanded {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := manifest.Open(path, a.in)
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
		r.found.add(syntaxDiagnostic(f, err))
	}
	for _, object := range objects {
		result.objects = append(result.objects, r.object(object))
	}
	return result
}

func (r *admission) object(d *manifest.Document) admittedObject {
	meta := typeMetaOf(d)
	same := admittedObject{document: d, json: d.JSON}
	if meta.isDefinition() {
		return same
	}
	out := &verdict{document: d, object: meta.object(), into: &r.found}
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
	app     *app
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
	r := &report.Report{Subjects: found.subjects, Noun: "object"}
	for _, d := range found.diagnostics {
		if s.want(&d, finding.Warning) {
			r.Diagnostics = append(r.Diagnostics, d)
		}
	}
	if len(r.Diagnostics) > 0 {
		r.Sort()
		color := p.color && isTerminal(p.app.err)
		if err := r.Write(p.app.err, "text", report.Options{Color: color}); err != nil {
			return err
		}
	}
	refused := r.Count(finding.Error) > 0
	if !refused || p.options.diff {
		if _, err := p.app.out.Write(p.body.Bytes()); err != nil {
			return err
		}
	}
	if refused || p.options.diff && p.altered {
		return errFindings
	}
	return nil
}
