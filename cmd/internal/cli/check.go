package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

type checkOptions struct {
	old        []string
	kubernetes string
	noLint     bool
	strict     bool
	ifAny      bool
	fields     string
}

func newCheck(a *App) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|-...",
		Short: "Check CRDs for what an API server refuses",
		Long: `Check reports everything that an API server would refuse in CRDs: names,
versions, schemas that are not structural, defaults, and CEL rules with their
estimated cost. It also warns of likely mistakes that API servers accept.

With --old it checks updates of existing CRDs, as the API server does: it ratchets
some errors that the old CRD already had, and reports changes that the API server
forbids.

By default, unknown and duplicate fields are errors: kubectl asks servers to
refuse them. --field-validation sets what kubectl calls --validate.`,
		Example: a.Example(`
  # Check the CRDs of a folder
  %[1]s check config/crd

  # Check a change as an update
  git show main:crd.yaml | %[1]s check crd.yaml --old -

  # Report everything, fail only on errors, as annotations on GitHub
  %[1]s check config/crd --fail-on error -o github

  # Report only what is new since the baseline was written
  %[1]s check config/crd --baseline known.json --write-baseline
  %[1]s check config/crd --baseline known.json`),
	}
	takesFiles(cmd, func(ctx context.Context, files []string) error { return a.check(ctx, files, o) })
	a.reportFlags(cmd)
	a.gateFlags(cmd)
	fieldsFlag(cmd, &o.fields)
	cmd.Flags().StringSliceVar(&o.old, "old", nil, "files or folders with the existing CRDs: check the change as the API server does on update")
	fileFlags(cmd, "old")
	cmd.Flags().StringVar(&o.kubernetes, "kubernetes", "", "the version of Kubernetes, such as 1.34, whose CEL functions rules may use (default: the newest known)")
	cmd.Flags().BoolVar(&o.noLint, "no-lint", false, "report only what API servers report, no advice")
	cmd.Flags().BoolVar(&o.ifAny, "if-any", false, "do not fail if the files contain no CRD, and leave out files that are not for Kubernetes; for hooks that pass all changed files. Only errors make it exit with 1, unless --fail-on or the settings say otherwise")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "also warn where API servers accept more than JSON Schema does; nearly every schema gets such warnings")
	return cmd
}

func (a *App) check(ctx context.Context, files []string, o checkOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	a.gate.hook = o.ifAny
	c := &checker{options: o, lint: lint.Options{CompatibilityVersion: o.kubernetes}}
	if c.lint.Enable, c.lint.Disable = s.lintChecks(); len(o.old) > 0 {
		if c.old, err = a.named(ctx, o.old, s, nil); err != nil {
			return err
		}
	}
	restore := collectRarely()
	r, err := a.scan(ctx, files, s, o.ifAny, c.document)
	restore()
	if err != nil {
		return err
	}
	if len(r.Subjects) == 0 && len(r.Diagnostics) == 0 && !o.ifAny {
		return fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(files, ", "))
	}
	r.Noun = "CRD"
	return a.finish("check", r, s)
}

func (o *checkOptions) check() error {
	if err := checkKubernetes(o.kubernetes); err != nil {
		return err
	}
	return checkFields(o.fields)
}

// checkKubernetes checks the value of --kubernetes, so that no CRD is blamed for it.
func checkKubernetes(text string) error {
	if text == "" {
		return nil
	}
	if _, err := version.ParseMajorMinor(text); err != nil {
		return fmt.Errorf("--kubernetes must be a version such as 1.34, not %q", text)
	}
	return nil
}

// heapOfCheck is what the YAML tree of the largest CRDs takes, 1.7 MB of
// text, and a little more.
const heapOfCheck = 28 << 20

// collectRarely lets the heap grow to the size that large CRDs need anyway
// before the garbage collector runs. Nothing of a CRD stays in memory after the
// check, so with the default GOGC the collector would run every few CRDs and take
// a sixth of the time. GOGC and GOMEMLIMIT in the environment take precedence.
func collectRarely() (restore func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(400), debug.SetMemoryLimit(heapOfCheck)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// lintChecks returns the lint checks that the settings turn on and off.
func (s *settings) lintChecks() (enable, disable []finding.ID) {
	for _, r := range lint.Checks {
		switch severity, set := s.Checks[r.ID]; {
		case set && severity == off:
			disable = append(disable, r.ID)
		case set && !r.Default:
			enable = append(enable, r.ID)
		}
	}
	return enable, disable
}

// checker checks CRDs.
type checker struct {
	options checkOptions
	lint    lint.Options
	old     map[string]*manifest.Document // by name
}

func (c *checker) document(d *manifest.Document, into *findings) {
	meta := typeMetaOf(d)
	if !meta.isCRD() {
		return
	}
	object := meta.object()
	into.subject(d, object)
	add := func(diagnostics ...report.Diagnostic) {
		for i := range diagnostics {
			diagnostics[i].Object = object
			into.add(diagnostics[i])
		}
	}
	parsed, err := crd.Parse(d.JSON)
	if err != nil {
		add(unreadable(d, err))
		return
	}
	defer parsed.Release()
	refused := false
	o := crd.ValidateOptions{Strict: c.options.strict, CompatibilityVersion: c.options.kubernetes, Undecodable: func(e *espalier.SyntaxError) {
		refused = true
		add(unreadable(d, e))
	}}
	if old := c.old[meta.name]; old != nil {
		if o.Old, err = crd.Parse(old.JSON); err != nil {
			add(unreadable(d, fmt.Errorf("the old CRD: %w", err)))
			return
		}
		defer o.Old.Release()
	}
	found, err := crd.Validate(parsed, o)
	if err != nil {
		add(unreadable(d, err))
		return
	}
	into.went("crd", "schema", "expressions")
	if len(finding.Errors(found)) == 0 {
		_, rules, err := conversion.Compile(parsed)
		if err != nil {
			add(unreadable(d, err))
			return
		}
		found = append(found, rules...)
	}
	for i := range found {
		refused = refused || found[i].Severity == finding.Error
		if x := findingDiagnostic(d, &found[i]); byFieldValidation(&x, c.options.fields) {
			add(x)
		}
	}
	// Advice on what is refused anyway would be noise.
	if c.options.noLint || refused {
		return
	}
	into.went("advice")
	advice, err := lint.Check(parsed, c.lint)
	if err != nil {
		add(unreadable(d, err))
		return
	}
	for i := range advice {
		add(findingDiagnostic(d, &advice[i]))
	}
}

// Checked is a CRD of a file, and the errors that a server would refuse it with.
type Checked struct {
	*manifest.Document
	Errors  []report.Diagnostic
	Subject report.Subject
}

// CheckFile checks the CRDs of a file as the command check does, without advice. old
// returns the CRD that a server has by that name, or nil: the file is then validated as
// its update. The error is for a file that is not YAML.
func CheckFile(f *manifest.File, old func(name string) []byte) ([]Checked, error) {
	objects, err := manifest.Objects(f)
	if err != nil {
		return nil, err
	}
	var all []Checked
	for _, o := range objects {
		meta := typeMetaOf(o)
		if !meta.isCRD() {
			continue
		}
		check := &checker{options: checkOptions{noLint: true}}
		if before := old(meta.name); before != nil {
			check.old = map[string]*manifest.Document{meta.name: {JSON: before}}
		}
		var found findings
		check.document(o, &found)
		found.diagnostics = slices.DeleteFunc(found.diagnostics, func(d report.Diagnostic) bool { return d.Severity != finding.Error })
		all = append(all, Checked{Document: o, Errors: found.diagnostics, Subject: found.subjects[0]})
	}
	return all, nil
}

// findingDiagnostic shows a finding of the library.
func findingDiagnostic(d *manifest.Document, f *finding.Finding) report.Diagnostic {
	return report.Diagnostic{
		Check: f.Check, Severity: f.Severity, Message: f.Error(), Summary: headline(f), Complete: f.Summary != "", Why: explanation(f.Check), Fix: cmp.Or(f.Fix, fix(f.Check)),
		Path: f.Path, Pointer: f.Pointer, Place: report.At(d.File, d.Of(f.Offset)),
	}
}

// unreadable shows an error for a document that the library cannot read.
func unreadable(d *manifest.Document, err error) report.Diagnostic {
	at := d.Of(0)
	message, summary, pointer := err.Error(), "", ""
	var syntax *espalier.SyntaxError
	if errors.As(err, &syntax) {
		at, message, pointer = d.Of(syntax.Offset), syntax.Msg, syntax.Pointer
		if pointer != "" {
			summary = strings.TrimPrefix(finding.Field(pointer)+": "+message, ": ")
			message = pointer + ": " + message
		}
	}
	return report.Diagnostic{Check: idSyntax, Severity: finding.Error, Message: message, Summary: summary, Pointer: pointer,
		Why: explanation(idSyntax), Place: report.At(d.File, at)}
}
