package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/lsp"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/offline"
	"github.com/espalier-dev/espalier/finding"
)

func newLSP(a *App) *cobra.Command {
	var stdio bool
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Run the language server for editors",
		Long: `Lsp shows in editors what check and validate report, while you type: diagnostics
with quick fixes, completion, documentation of fields, and the way from a field to
its schema. It speaks the Language Server Protocol on standard input and output.
Editors start it; the guide to editors says how.

It knows the built-in kinds, and the CRDs in the files of the workspace and of the
editor's setting espalier.crds. If the editor's setting espalier.cluster names a
cluster, or the setting cluster of ` + settingsName + ` does, it also knows the CRDs of
that cluster, which kubectl reads. They are kept in the user's cache folder.
It reads ` + settingsName + ` like the other commands.`,
		Example: a.Example(`
  # Neovim 0.11: in init.lua
  vim.lsp.config('espalier', { cmd = { 'espalier', 'lsp' }, filetypes = { 'yaml', 'json' } })
  vim.lsp.enable('espalier')`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveLSP(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&stdio, "stdio", true, "speak on standard input and output, the only way there is; some editors add this flag")
	return cmd
}

// heapOfLSP is what memory of the language server may reach before the garbage collector runs more often. With 300 CRDs
// in use it needs less.
const heapOfLSP = 112 << 20

func (a *App) serveLSP(ctx context.Context) error {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(150) // with the default it takes a third of the time of a key
		debug.SetMemoryLimit(heapOfLSP)
	}
	stream := struct {
		io.Reader
		io.Writer
		io.Closer
	}{a.In, a.Out, closers{a.In}}
	return lsp.Serve(ctx, stream, &lspEngine{app: a}, lsp.Config{Version: Version(), Log: a.Err})
}

// closers closes what can be closed.
type closers []any

func (c closers) Close() error {
	for _, x := range c {
		if x, ok := x.(io.Closer); ok {
			_ = x.Close()
		}
	}
	return nil
}

// lspEngine answers the language server with the code of check and validate.
type lspEngine struct{ app *App }

// Settings reads the settings file of a folder. If it has an error, the settings are empty.
func (e *lspEngine) Settings(dir string) (lsp.Settings, error) {
	path := e.app.config
	if path == "" {
		if path = settingsAbove(dir); path == "" {
			path = "none"
		}
	}
	s, err := (&App{Name: e.app.Name, config: path}).settings()
	if err != nil {
		return &settings{}, err
	}
	return s, nil
}

// Excludes reports whether commands leave a file or folder out.
func (s *settings) Excludes(path string) bool { return s.excludes(path) }

// CRDFiles are the files, folders and patterns of the setting crds.
func (s *settings) CRDFiles() []string { return s.crds() }

// Context names the cluster of the project.
func (s *settings) Context() string { return s.Cluster.Context }

// CRD returns the CRD that a document is, or nil.
func (e *lspEngine) CRD(d *manifest.Document) lsp.CRD {
	all := make(resources)
	if all.add(d, nil) != nil {
		return nil
	}
	for _, r := range all {
		return r
	}
	return nil
}

// GroupKind names the kind of the CRD.
func (r *resource) GroupKind() lsp.GroupKind {
	return lsp.GroupKind{Group: r.crd.Group, Kind: r.crd.Kind}
}

// Versions are the names of the served versions, the newest first.
func (r *resource) Versions() []string { return r.served() }

// Schema returns the schema of a version, and where it is in the document.
func (r *resource) Schema(version string) (schema []byte, pointer string, ok bool) {
	c, ok := r.versions[version]
	if !ok {
		return nil, "", false
	}
	return c.version.Schema, c.version.Pointer, c.version.Schema != nil
}

// Document is where the CRD was found.
func (r *resource) Document() *manifest.Document { return r.document }

// Fragments reports whether a file is a kustomization, a patch that one names, or a template. Kustomizations
// may change with each call.
func (e *lspEngine) Fragments(f *manifest.File) bool {
	return isKustomization(f.Name) || isTemplate(f, f.Name) || newSieve(nil, false).isPatch(f.Name)
}

// Diagnose reports what check reports for a CRD, and validate for other objects.
func (e *lspEngine) Diagnose(d *manifest.Document, kinds lsp.Kinds, o lsp.Options, in lsp.Settings) []report.Diagnostic {
	s, _ := in.(*settings)
	var found findings
	if typeMetaOf(d).isCRD() {
		if patchesCRD(d) {
			return nil
		}
		c := &checker{options: checkOptions{fields: fieldsStrict}}
		c.lint = lint.Options{}
		c.lint.Enable, c.lint.Disable = s.lintChecks()
		c.document(d, &found)
	} else {
		options := validateOptions{fields: fieldsStrict, ignoreMissing: o.IgnoreMissing, version: offline.Latest}
		if version, err := offline.ParseVersion(o.Kubernetes); err == nil {
			options.version = version
		}
		v := &validator{options: options, resources: resourcesFor(typeMetaOf(d), kinds)}
		v.document(d, &found)
	}
	return e.wanted(found.diagnostics, s, o.Severity)
}

// Suppressions reads the comments of a file.
func (e *lspEngine) Suppressions(f *manifest.File, in lsp.Settings, o lsp.Options) (func(int, finding.ID) bool, []report.Diagnostic) {
	s, _ := in.(*settings)
	var wrong findings
	marks := suppressions(f, &wrong)
	return func(line int, check finding.ID) bool {
		return suppressed(marks, &report.Diagnostic{Check: check, Place: report.Place{Line: line}})
	}, e.wanted(wrong.diagnostics, s, o.Severity)
}

// resourcesFor returns the CRD of an object. If there is none, it returns the names of all others, which hints
// are made of.
func resourcesFor(t typeMeta, kinds lsp.Kinds) resources {
	key := groupKind{t.group(), t.kind}
	if r, ok := kinds.Find(lsp.GroupKind{Group: key.group, Kind: key.kind}).(*resource); ok {
		return resources{key: r}
	}
	all := make(resources)
	for _, k := range kinds.All() {
		all[groupKind{k.Group, k.Kind}] = nil
	}
	delete(all, key)
	return all
}

// wanted applies the settings to findings, as a report does.
func (e *lspEngine) wanted(found []report.Diagnostic, s *settings, least finding.Severity) []report.Diagnostic {
	r := &report.Report{Diagnostics: found}
	s.choose(r, least)
	return r.Diagnostics
}

// Syntax reports a file that cannot be parsed.
func (e *lspEngine) Syntax(f *manifest.File, err error, in lsp.Settings) []report.Diagnostic {
	s, _ := in.(*settings)
	var all []report.Diagnostic
	for _, err := range manifest.Errors(err) {
		all = append(all, SyntaxDiagnostic(f, err))
	}
	return e.wanted(all, s, finding.Info)
}

// Page is the address of the page of a check.
func (e *lspEngine) Page(id finding.ID) string {
	if _, ok := checkByID(id); !ok {
		return ""
	}
	return fmt.Sprintf("https://github.com/espalier-dev/espalier/blob/main/docs/checks/%s.md", id)
}
