package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/install"
	"github.com/espalier-dev/espalier/internal/manifest"
	"github.com/espalier-dev/espalier/internal/report"
)

// definitionFiles are the files of --crds, and what of them the server has.
//
//	files ── read, check ──▶ wanted ── apply what differs ──▶ served
//
// A file that cannot be read, and a definition that the check or the server
// refuses, leave what is served as it is.
type definitionFiles struct {
	app      *app
	paths    []string
	settings *settings
	watch    *fileWatch // nil if there are no paths
	client   *install.Client

	files  map[string]*definitionFile    // by path with slashes, as last read
	served map[string]install.Definition // by name, as the server has taken them
}

// definitionFile is what one file has.
type definitionFile struct {
	sum      [sha256.Size]byte
	sound    []install.Definition
	unsound  []string // names of definitions that have errors
	garbled  bool     // nobody knows what is in it
	findings findings
	err      error
}

// newDefinitionFiles begins to watch files. Nothing that happens to them after
// that is missed.
func newDefinitionFiles(a *app, paths []string, s *settings) (*definitionFiles, error) {
	f := &definitionFiles{app: a, paths: paths, settings: s, files: map[string]*definitionFile{}, served: map[string]install.Definition{}}
	if len(paths) == 0 {
		return f, nil
	}
	var err error
	f.watch, err = watchFiles(paths, s.excludes)
	return f, err
}

func (f *definitionFiles) close() {
	if f.watch != nil {
		f.watch.close()
	}
}

// changes tells when files may have changed. It never does if there are none.
func (f *definitionFiles) changes() <-chan struct{} {
	if f.watch == nil {
		return nil
	}
	return f.watch.changes
}

// loading is what has come of one look at the files.
type loading struct {
	touched         bool // a file has another text than before, or has gone
	loaded, changed []string
	gone            []string // no longer in the files
	breaks          []string // what changes do to objects that there are
	findings        report.Report
	errs            []error
}

// load brings the server up to date with the files.
func (f *definitionFiles) load(ctx context.Context) *loading {
	l := &loading{}
	wanted := f.wanted(f.read(ctx, f.expand(l), l), l)
	var different []install.Definition
	for _, d := range wanted {
		if before, ok := f.served[d.Name]; !ok || !bytes.Equal(before.JSON, d.JSON) {
			different = append(different, d)
		}
	}
	f.apply(ctx, different, l)
	return l
}

// expand returns the files that there are now.
func (f *definitionFiles) expand(l *loading) []string {
	var all []string
	for _, path := range f.paths {
		files, err := manifest.Expand([]string{path}, f.settings.excludes)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("--crds: %w", err))
		}
		for _, file := range files {
			if !slices.Contains(all, file) {
				all = append(all, file)
			}
		}
	}
	return all
}

// read reads the files that have changed, and forgets those that there are no
// longer.
func (f *definitionFiles) read(ctx context.Context, paths []string, l *loading) []*definitionFile {
	now := make([]*definitionFile, len(paths))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range paths {
		group.Go(func() error {
			now[i] = f.readFile(ctx, path, f.files[filepath.ToSlash(path)])
			return nil
		})
	}
	_ = group.Wait() // errors are with the files
	former := f.files
	f.files = make(map[string]*definitionFile, len(paths))
	for i, file := range now {
		name := filepath.ToSlash(paths[i])
		f.files[name] = file
		if former[name] == file {
			continue
		}
		l.touched = true
		l.findings.Diagnostics = append(l.findings.Diagnostics, file.findings.diagnostics...)
		l.findings.Subjects = append(l.findings.Subjects, file.findings.subjects...)
		l.errs = append(l.errs, file.err)
	}
	for path := range former {
		l.touched = l.touched || f.files[path] == nil
	}
	return now
}

// readFile returns what is in a file: before, if that is still so.
func (f *definitionFiles) readFile(ctx context.Context, path string, before *definitionFile) *definitionFile {
	file, err := manifest.Open(path, nil)
	if errors.Is(err, os.ErrNotExist) {
		return &definitionFile{} // it has gone since we looked
	}
	if err != nil {
		return &definitionFile{garbled: true, err: err}
	}
	sum := sha256.Sum256(file.Text)
	if before != nil && before.err == nil && before.sum == sum {
		return before
	}
	d := &definitionFile{sum: sum}
	objects, err := manifest.Objects(file)
	if err != nil {
		d.findings.add(syntaxDiagnostic(file, err))
		d.garbled = true
		return d
	}
	for _, o := range objects {
		f.judge(ctx, o, d)
	}
	return d
}

// judge adds an object to those of a file, if it is a definition. It is judged as
// `espalier check` does, as a change of what the server has.
func (f *definitionFiles) judge(ctx context.Context, o *manifest.Document, d *definitionFile) {
	meta := typeMetaOf(o)
	if !meta.isDefinition() {
		return
	}
	old, _ := f.client.Current(ctx, meta.name) // if it does not answer now, it will when it is sent the new one
	check := &checker{options: checkOptions{noLint: true}, old: map[string][]byte{meta.name: old}}
	var found findings
	check.document(o, &found)
	found.diagnostics = slices.DeleteFunc(found.diagnostics, func(x report.Diagnostic) bool { return x.Severity != finding.Error })
	d.findings.diagnostics = append(d.findings.diagnostics, found.diagnostics...)
	d.findings.subjects = append(d.findings.subjects, found.subjects...)
	if len(found.diagnostics) > 0 {
		d.unsound = append(d.unsound, meta.name)
		return
	}
	d.sound = append(d.sound, install.Definition{Name: meta.name, Source: o.File.Name, JSON: o.JSON, Beta: meta.version() == "v1beta1"})
}

// wanted is what the server is to have. It notes what is not in the files any
// more.
func (f *definitionFiles) wanted(files []*definitionFile, l *loading) []install.Definition {
	var all []install.Definition
	from := map[string]string{} // by name
	for _, file := range files {
		for _, name := range file.unsound {
			from[name] = ""
		}
	}
	for _, file := range files {
		for _, d := range file.sound {
			switch first, twice := from[d.Name]; {
			case !twice:
				from[d.Name] = d.Source
				all = append(all, d)
			case first != "":
				l.errs = append(l.errs, fmt.Errorf("%s: %s is defined in %s, too, which counts: take one of them out", d.Source, d.Name, first))
			}
		}
	}
	for name, d := range f.served {
		if _, there := from[name]; there {
			continue
		}
		if file := f.files[d.Source]; file != nil && file.garbled {
			continue
		}
		l.gone = append(l.gone, name)
		delete(f.served, name)
	}
	slices.Sort(l.gone)
	return all
}

// atATime is how many definitions are sent to the server at a time.
const atATime = 8

// apply sends definitions to the server, and notes which it has taken.
func (f *definitionFiles) apply(ctx context.Context, definitions []install.Definition, l *loading) {
	errs := make([]error, len(definitions))
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range definitions {
		group.Go(func() error {
			errs[i] = f.client.Apply(ctx, definitions[i:i+1])
			return nil
		})
	}
	_ = group.Wait() // the errors have their places
	for i, d := range definitions {
		if errs[i] != nil {
			l.errs = append(l.errs, errs[i])
			continue
		}
		if before, ok := f.served[d.Name]; ok {
			l.changed = append(l.changed, d.Name)
			l.breaks = append(l.breaks, breaks(before, d)...)
		} else {
			l.loaded = append(l.loaded, d.Name)
		}
		f.served[d.Name] = d
	}
}

// breaks tells what a change does to objects that are stored, as `espalier diff`
// does.
func breaks(before, now install.Definition) []string {
	old, err := crd.Parse(before.JSON)
	if err != nil {
		return nil // the server has taken it: that is what counts
	}
	changed, err := crd.Parse(now.JSON)
	if err != nil {
		return nil
	}
	changes, err := diff.Compare(old, changed)
	if err != nil {
		return nil
	}
	var told []string
	for i := range changes {
		if c := &changes[i]; c.Level == diff.Breaking && c.Breaks&diff.Stored != 0 {
			told = append(told, fmt.Sprintf("%s: breaks stored objects: %s", now.Name, c.Message))
		}
	}
	return told
}

// summary tells what has changed, in one line and what it means.
func (l *loading) summary() string {
	var parts []string
	for _, p := range []struct {
		names []string
		what  string
	}{{l.loaded, "loaded"}, {l.changed, "changed"}} {
		if len(p.names) > 0 {
			parts = append(parts, strings.Join(p.names, ", ")+" "+p.what)
		}
	}
	var text strings.Builder
	switch {
	case len(parts) > 0:
		fmt.Fprintf(&text, "Reloaded: %s\n", strings.Join(parts, "; "))
	case l.touched && !l.failed() && len(l.gone) == 0:
		fmt.Fprintf(&text, "Reloaded: no definition has changed\n")
	}
	for _, line := range l.breaks {
		fmt.Fprintf(&text, "%s\n", line)
	}
	for _, name := range l.gone {
		fmt.Fprintf(&text, "%[1]s is in no file any more, and stays on the server: 'kubectl delete crd %[1]s' deletes it\n", name)
	}
	return text.String()
}

func (l *loading) failed() bool {
	return len(l.findings.Diagnostics) > 0 || errors.Join(l.errs...) != nil
}

// complain reports what is wrong with files.
func (a *app) complain(l *loading) {
	if !l.failed() {
		return
	}
	if len(l.findings.Diagnostics) > 0 {
		l.findings.Noun = "definition"
		l.findings.Sort()
		color, _ := a.colored() // a word that is none means no colours
		_ = l.findings.Write(a.err, "text", report.Options{Color: color && isTerminal(a.err)})
	}
	for _, err := range l.errs {
		if err != nil {
			fmt.Fprintf(a.err, "%s: %v\n", a.name, err)
		}
	}
	fmt.Fprintln(a.err, "The server goes on with what it has.")
}
