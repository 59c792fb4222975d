package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	rewrite "github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/splice"
	"github.com/espalier-dev/espalier/finding"
)

type fixOptions struct {
	diff  bool
	write bool
	ifAny bool
}

func newFix(a *App) *cobra.Command {
	var o fixOptions
	cmd := &cobra.Command{
		Use:   "fix FILE|DIR|-...",
		Short: "Rewrite CRDs that API servers refuse: v1beta1 to v1, non-structural schemas to structural ones",
		Long: `Fix rewrites CRDs so that current API servers accept them. It converts
apiextensions.k8s.io/v1beta1 to v1, and schemas that are not structural to
structural ones: types and fields that are specified only inside allOf, anyOf,
oneOf or not move outside, and these keywords keep the validation of values.

The new schema accepts every object that the old one accepted, and prunes no
field that the old one mentions. If fix has to remove a constraint or to infer a
type, it prints a warning. It does not change schemas that it cannot fix.

Fix keeps the comments, order and formatting of unchanged parts. By default it
prints a diff to standard output and the warnings to standard error. With --write
it changes the files. With formats other than text it reports every change with
its reason.

Exit codes: 0 nothing to fix, or everything fixed with --write; 1 something to
fix, or something that cannot be fixed; 2 could not run.`,
		Example: a.Example(`
  # Show the changes and their reasons
  %[1]s fix crd.yaml

  # Change the files
  %[1]s fix config/crd --write

  # Upgrade a CRD from standard input
  cat old.yaml | %[1]s fix - --write > new.yaml`),
	}
	takesFiles(cmd, func(ctx context.Context, files []string) error {
		if o.write && cmd.Flags().Changed("diff") && o.diff {
			return errors.New("--diff shows the changes and --write makes them: choose one")
		}
		return a.fix(ctx, files, o)
	})
	a.reportFlags(cmd)
	cmd.Flags().BoolVar(&o.diff, "diff", true, "show the changes")
	cmd.Flags().BoolVar(&o.write, "write", false, "change the files; a CRD from standard input goes to standard output")
	cmd.Flags().BoolVar(&o.ifAny, "if-any", false, "do not fail if the files contain no CRD, for hooks that pass all changed files")
	return cmd
}

func (a *App) fix(ctx context.Context, files []string, o fixOptions) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	expanded, err := s.expand(ctx, files)
	if err != nil {
		return err
	}
	run := &fixing{App: a, options: o, settings: s}
	bar := a.progress(len(expanded), "files")
	for _, path := range expanded {
		if err := ctx.Err(); err != nil {
			bar.stop()
			return err
		}
		if err := run.file(path); err != nil {
			bar.stop()
			return err
		}
		bar.add(1)
	}
	bar.stop()
	if len(run.found.subjects) == 0 && len(run.found.diagnostics) == 0 && !o.ifAny {
		return fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(files, ", "))
	}
	return run.finish()
}

// fixing is one run of the command.
type fixing struct {
	*App
	options  fixOptions
	settings *settings
	found    findings
	out      bytes.Buffer // the differences, or the text from standard input
	changed  int          // CRDs
	files    int          // with changed CRDs
	failed   bool         // something cannot be fixed
}

func (r *fixing) file(path string) error {
	f, err := manifest.Open(path, r.In)
	if err != nil {
		r.found.add(unreadableFile(path, err))
		r.failed = true
		return nil
	}
	objects, err := manifest.Objects(f)
	for _, err := range manifest.Errors(err) {
		r.found.add(SyntaxDiagnostic(f, err))
		r.failed = true
	}
	text := f.Text
	for _, object := range objects {
		text = r.fixCRD(object, text)
	}
	changed := !bytes.Equal(text, f.Text)
	if changed {
		r.files++
	}
	switch {
	case r.options.write && path == "-":
		r.out.Write(text)
	case r.options.write && changed:
		return overwrite(path, text)
	case r.options.diff && changed:
		r.out.Write(diff.Diff(f.Name, f.Text, f.Name, text))
	}
	return nil
}

// overwrite replaces the text of a file that exists, whose mode stays.
func overwrite(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, info.Mode().Perm())
}

// fixCRD fixes a CRD of a file and returns the text of the file.
func (r *fixing) fixCRD(d *manifest.Document, text []byte) []byte {
	meta := typeMetaOf(d)
	if !meta.isCRD() {
		return text
	}
	object := meta.object()
	r.found.subject(d, object)
	add := func(x report.Diagnostic) {
		x.Object = object
		r.found.add(x)
	}
	result, err := rewrite.CRD(d.JSON)
	if err != nil {
		r.failed = true
		add(unreadable(d, err))
		return text
	}
	for _, n := range result.Notes {
		r.failed = r.failed || n.Kind == rewrite.Cannot
		add(noteDiagnostic(d, &result, n))
	}
	if !result.Changed {
		return text
	}
	fixed, err := splice.Apply(text, d.Index, inText(d.List, result.Edits))
	if err != nil {
		r.failed = true
		at, _ := d.Locate("")
		add(report.Diagnostic{Check: idSyntax, Severity: finding.Error, Message: "the CRD can be fixed, but not in this file: " + err.Error(),
			Place: report.At(d.File, at)})
		return text
	}
	r.changed++
	if r.format != "text" && r.format != "" && !r.options.write {
		for i := range result.Edits {
			add(editDiagnostic(d, &result, i))
		}
	}
	return fixed
}

// inText makes edits of a text of those of an object that may be in a list.
func inText(list string, edits []rewrite.Edit) []splice.Edit {
	out := make([]splice.Edit, len(edits))
	for i, e := range edits {
		out[i] = splice.Edit{Op: splice.Op(e.Op), Pointer: list + e.Pointer, Value: e.Value, Before: e.Before}
		if e.From != "" {
			out[i].From = list + e.From
		}
	}
	return out
}

var noteSeverities = map[rewrite.Kind]finding.Severity{
	rewrite.Advice: finding.Info, rewrite.Wider: finding.Warning, rewrite.Narrower: finding.Warning, rewrite.Cannot: finding.Error,
}

func noteDiagnostic(d *manifest.Document, result *rewrite.Result, n rewrite.Note) report.Diagnostic {
	origin := result.Origin(n.Pointer, len(result.Edits))
	at, _ := d.LocateKey(origin)
	x := report.Diagnostic{
		Check: n.Check, Severity: noteSeverities[n.Kind], Message: n.Pointer + ": " + n.Text, Summary: strings.TrimPrefix(finding.Field(n.Pointer)+": "+n.Text, ": "), Why: explanation(n.Check),
		Pointer: origin, Place: report.At(d.File, at),
	}
	if n.Kind == rewrite.Cannot {
		if x.Fix, _ = rewrite.Means(n.Check); x.Fix == "" {
			x.Fix = fix(n.Check)
		}
	}
	return x
}

// editDiagnostic shows an edit as what is wrong without it.
func editDiagnostic(d *manifest.Document, result *rewrite.Result, i int) report.Diagnostic {
	e := &result.Edits[i]
	pointer := e.Pointer
	if e.From != "" {
		pointer = e.From
	}
	origin := result.Origin(pointer, i)
	at, _ := d.LocateKey(origin)
	what := e.Op.String() + " " + e.Pointer
	switch e.Op {
	case rewrite.Set, rewrite.Insert:
		what += " = " + shortened(e.Value)
	case rewrite.Move, rewrite.Copy:
		what = e.Op.String() + " " + e.From + " to " + e.Pointer
	}
	return report.Diagnostic{
		Check: e.Check, Severity: finding.Error, Message: e.Why, Why: explanation(e.Check), Fix: what,
		Pointer: origin, Place: report.At(d.File, at),
	}
}

// shortened is a value for reading.
func shortened(value []byte) string {
	const enough = 100
	if len(value) <= enough {
		return string(value)
	}
	return strings.ToValidUTF8(string(value[:enough]), "") + "…"
}

// finish prints what was found and the changes.
func (r *fixing) finish() error {
	rep := &report.Report{Subjects: r.found.subjects, Diagnostics: r.found.diagnostics, Noun: "CRD"}
	undone := r.failed || r.changed > 0 && !r.options.write
	if r.format != "text" && r.format != "" {
		if err := r.App.finish("fix", rep, r.settings); err != nil && !errors.Is(err, errFindings) {
			return err
		}
	} else {
		if err := r.text(rep); err != nil {
			return err
		}
	}
	if undone {
		return errFindings
	}
	return nil
}

// text prints the warnings on standard error and the changes on standard output.
func (r *fixing) text(rep *report.Report) error {
	least, err := finding.ParseSeverity(r.severity)
	if err != nil {
		return err
	}
	color, err := r.Colored()
	if err != nil {
		return err
	}
	r.settings.choose(rep, least)
	if len(rep.Diagnostics) > 0 {
		if err := rep.Write(r.Err, "text", report.Options{Color: color && IsTerminal(r.Err)}); err != nil {
			return err
		}
	}
	switch {
	case r.changed > 0 && r.options.write:
		fmt.Fprintf(r.Err, "fixed %s in %s\n", count(r.changed, "CRD"), count(r.files, "file"))
	case r.changed > 0 && !r.options.diff:
		fmt.Fprintf(r.Err, "%s in %s to fix: --write changes the files\n", count(r.changed, "CRD"), count(r.files, "file"))
	case r.changed == 0 && !r.failed:
		fmt.Fprintf(r.Err, "nothing to fix in %s\n", count(len(rep.Subjects), "CRD"))
	}
	_, err = r.App.Out.Write(r.out.Bytes())
	return err
}
