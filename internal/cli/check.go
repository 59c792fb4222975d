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

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/internal/report"
)

type checkOptions struct {
	files      []string
	old        []string
	kubernetes string
	noLint     bool
	strict     bool
	ifAny      bool
}

func newCheck(a *app) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|-...",
		Short: "Everything a server would refuse in CRDs, and advice",
		Long: `Check reports everything that an API server would refuse in
CustomResourceDefinitions: names, versions, the rules for structural schemas,
defaults, and CEL rules with what they may cost. Beyond that it warns of what
servers accept and authors do not mean.

With --old it judges the change of definitions that exist already, as the server
does on update: some errors are then forgiven, others are new.`,
		Example: a.example(`
  # The CRDs of a folder
  %[1]s check config/crd

  # What a server would say to this change
  git show main:crd.yaml | %[1]s check crd.yaml --old -

  # Only what a server refuses, for GitHub to show beside the lines
  %[1]s check config/crd --severity error -o github`),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := paths(cmd, args, o.files)
			if err != nil {
				return err
			}
			return a.check(cmd.Context(), files, o)
		},
	}
	filenameFlag(cmd, &o.files)
	a.reportFlags(cmd)
	cmd.Flags().StringSliceVar(&o.old, "old", nil, "files or folders with the definitions as they are now: judge the change, as a server does on update")
	cmd.Flags().StringVar(&o.kubernetes, "kubernetes", "", "the version of Kubernetes, such as 1.34, whose CEL functions rules may use (default: the newest known)")
	cmd.Flags().BoolVar(&o.noLint, "no-lint", false, "only what servers say: no advice")
	cmd.Flags().BoolVar(&o.ifAny, "if-any", false, "do not fail if there is no definition in the files, for hooks that pass whatever has changed")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "also warn where servers accept more than JSON Schema would in nearly every schema")
	return cmd
}

func (a *app) check(ctx context.Context, files []string, o checkOptions) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	c := &checker{options: o, lint: lint.Options{CompatibilityVersion: o.kubernetes}}
	if c.lint.Enable, c.lint.Disable = s.lintRules(); len(o.old) > 0 {
		if c.old, err = a.definitions(ctx, o.old, s); err != nil {
			return err
		}
	}
	restore := collectRarely()
	r, err := a.scan(ctx, files, s, c.document)
	restore()
	if err != nil {
		return err
	}
	if len(r.Subjects) == 0 && len(r.Diagnostics) == 0 && !o.ifAny {
		return fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(files, ", "))
	}
	r.Noun = "definition"
	return a.finish("check", r, s)
}

// heapOfCheck is what the YAML tree of the largest definitions takes, 1.7 MB of
// text, and a little more.
const heapOfCheck = 28 << 20

// collectRarely lets the heap grow to the size that large definitions need
// anyway before garbage is collected. Of a definition nothing is left when it is
// checked, so that by default, at twice what is alive, there would be a
// collection for every few of them: that takes a sixth of the time. Whoever sets
// GOGC or GOMEMLIMIT knows better.
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

// lintRules returns the rules that the settings switch on and off.
func (s *settings) lintRules() (enable, disable []finding.ID) {
	for _, r := range lint.Rules {
		switch severity, set := s.Rules[r.ID]; {
		case set && severity == off:
			disable = append(disable, r.ID)
		case set && !r.Default:
			enable = append(enable, r.ID)
		}
	}
	return enable, disable
}

// checker checks definitions.
type checker struct {
	options checkOptions
	lint    lint.Options
	old     map[string][]byte // by name
}

func (c *checker) document(d *manifest.Document, into *findings) {
	meta := typeMetaOf(d)
	if !meta.isDefinition() {
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
	definition, err := crd.Parse(d.JSON)
	if err != nil {
		add(unreadable(d, err))
		return
	}
	defer definition.Release()
	o := crd.ValidateOptions{Strict: c.options.strict, CompatibilityVersion: c.options.kubernetes}
	if old := c.old[meta.name]; old != nil {
		if o.Old, err = crd.Parse(old); err != nil {
			add(unreadable(d, fmt.Errorf("the CRD before the change: %w", err)))
			return
		}
		defer o.Old.Release()
	}
	found, err := crd.Validate(definition, o)
	if err != nil {
		add(unreadable(d, err))
		return
	}
	for i := range found {
		add(findingDiagnostic(d, &found[i]))
	}
	// Advice on what is refused anyway would be noise.
	if c.options.noLint || slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Severity == finding.Error }) {
		return
	}
	advice, err := lint.Check(definition, c.lint)
	if err != nil {
		add(unreadable(d, err))
		return
	}
	for i := range advice {
		add(findingDiagnostic(d, &advice[i]))
	}
}

// findingDiagnostic shows a finding of the library.
func findingDiagnostic(d *manifest.Document, f *finding.Finding) report.Diagnostic {
	return report.Diagnostic{
		Rule: f.Rule, Severity: f.Severity, Message: f.Error(), Why: explanation(f.Rule), Fix: cmp.Or(f.Fix, fix(f.Rule)),
		Path: f.Path, Pointer: f.Pointer, Place: report.At(d.File, d.Of(f.Offset)),
	}
}

// unreadable shows an error for a document that the library cannot read.
func unreadable(d *manifest.Document, err error) report.Diagnostic {
	at := d.Of(0)
	message := err.Error()
	pointer := ""
	var syntax *espalier.SyntaxError
	if errors.As(err, &syntax) {
		at, message, pointer = d.Of(syntax.Offset), syntax.Msg, syntax.Pointer
		if pointer != "" {
			message = pointer + ": " + message
		}
	}
	return report.Diagnostic{Rule: ruleSyntax, Severity: finding.Error, Message: message, Pointer: pointer,
		Why: explanation(ruleSyntax), Place: report.At(d.File, at)}
}

// definitions reads the definitions in files, by name. What cannot be read is an
// error: it is not what the command is about.
func (a *app) definitions(ctx context.Context, files []string, s *settings) (map[string][]byte, error) {
	byName := make(map[string][]byte)
	list, err := a.objects(ctx, files, s)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		meta := typeMetaOf(d)
		if !meta.isDefinition() {
			continue
		}
		if byName[meta.name] != nil {
			return nil, fmt.Errorf("%s: %s is there twice", d.File.Name, meta.object())
		}
		byName[meta.name] = d.JSON
	}
	if len(byName) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(files, ", "))
	}
	return byName, nil
}

// objects reads all objects of files into memory.
func (a *app) objects(ctx context.Context, files []string, s *settings) ([]*manifest.Document, error) {
	expanded, err := manifest.Expand(files, s.excludes)
	if err != nil {
		return nil, err
	}
	var all []*manifest.Document
	for _, path := range expanded {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := manifest.Open(path, a.in)
		if err != nil {
			return nil, err
		}
		objects, err := manifest.Objects(f)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}
