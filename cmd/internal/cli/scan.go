package cli

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

// findings are those of one file.
type findings struct {
	diagnostics []report.Diagnostic
	subjects    []report.Subject
	ran         map[string]bool // groups of checks, by name, that an object went through
}

// went notes that the checks of some groups looked at an object.
func (f *findings) went(groups ...string) {
	if f.ran == nil {
		f.ran = map[string]bool{}
	}
	for _, g := range groups {
		f.ran[g] = true
	}
}

func (f *findings) add(d report.Diagnostic) { f.diagnostics = append(f.diagnostics, d) }

// subject notes that an object is looked at.
func (f *findings) subject(d *manifest.Document, object string) {
	f.subjects = append(f.subjects, report.Subject{File: d.File.Name, Object: object})
}

// scan calls each for every object in the files that paths name, from several
// goroutines but for the objects of a file in order, and collects what they
// find in the order of the files. What cannot be read or parsed is a finding. With ours,
// files that are not for Kubernetes are left out. Kustomizations and their patches are read
// only if paths name them.
func (a *App) scan(ctx context.Context, paths []string, s *settings, ours bool, each func(*manifest.Document, *findings)) (*report.Report, error) {
	files, err := s.expand(ctx, paths)
	if err != nil {
		return nil, err
	}
	sieve := newSieve(paths, ours)
	results := make([]findings, len(files))
	bar := a.progress(len(files), "files")
	defer bar.stop()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) || ctx.Err() != nil {
					return
				}
				a.scanFile(files[i], &results[i], sieve, each)
				bar.add(1)
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &report.Report{}
	for i := range results {
		r.Subjects = append(r.Subjects, results[i].subjects...)
		r.Diagnostics = append(r.Diagnostics, results[i].diagnostics...)
	}
	return r, nil
}

// large is the size from which files are read one at a time: a YAML tree takes
// about ten times the space of its text.
const large = 256 << 10

func (a *App) scanFile(path string, into *findings, s *sieve, each func(*manifest.Document, *findings)) {
	f, err := manifest.Open(path, a.In)
	if err != nil {
		into.add(unreadableFile(path, err))
		return
	}
	if len(f.Text) > large {
		a.oneLarge.Lock()
		defer a.oneLarge.Unlock()
	}
	objects, err := manifest.Objects(f)
	wants := s.wants(f, path)
	for _, object := range objects {
		if wants(object) {
			each(object, into)
		}
	}
	for _, err := range manifest.Errors(err) {
		if !s.ours || isOurs(f) {
			into.add(SyntaxDiagnostic(f, err))
		}
	}
	into.suppress(suppressions(f, into))
}

// unreadableFile shows an error of reading a file.
func unreadableFile(path string, err error) report.Diagnostic {
	return report.Diagnostic{Check: idFileUnreadable, Severity: finding.Error, Message: "read the file: " + err.Error(), Why: explanation(idFileUnreadable),
		Fix: fix(idFileUnreadable), Place: report.Place{File: filepath.ToSlash(path)}}
}

// SyntaxDiagnostic shows an error of parsing a file.
func SyntaxDiagnostic(f *manifest.File, err error) report.Diagnostic {
	d := report.Diagnostic{Check: idSyntax, Severity: finding.Error, Message: err.Error(), Why: explanation(idSyntax), Place: report.Place{File: f.Name}}
	var at *manifest.Error
	if errors.As(err, &at) {
		d.Message, d.Place = at.Msg, report.At(f, at.Position)
		if strings.Contains(d.Excerpt, "{{") {
			d.Fix = "this looks like a template: render it first, or exclude it in " + settingsName
		}
	}
	return d
}

// typeMeta is what an object says it is.
type typeMeta struct {
	apiVersion, kind, namespace, name string
}

// object renders the name of an object for reports.
func (t typeMeta) object() string {
	name := t.name
	if t.namespace != "" {
		name = t.namespace + "/" + name
	}
	return t.kind + "/" + name
}

func (t typeMeta) group() string {
	group, _, ok := strings.Cut(t.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func (t typeMeta) version() string {
	_, version, ok := strings.Cut(t.apiVersion, "/")
	if !ok {
		return t.apiVersion
	}
	return version
}

func (t typeMeta) isCRD() bool {
	return t.kind == "CustomResourceDefinition" && t.group() == "apiextensions.k8s.io"
}

func typeMetaOf(d *manifest.Document) typeMeta {
	return typeMeta{apiVersion: d.APIVersion, kind: d.Kind, namespace: d.Namespace, name: d.Name}
}
