package command

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

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/server/crdinstall"
)

// crdFiles are the files of --crds, and the CRDs of them that the server has.
//
//	files ── read, check ──▶ wanted ── apply what differs ──▶ served
//
// A file that cannot be read, and a CRD that the check or the server
// refuses, leave what is served as it is.
type crdFiles struct {
	app      *app
	paths    []string
	excluded func(path string) bool
	watch    *fileWatch // nil if there are no paths
	client   *crdinstall.Client

	files  map[string]*crdFile              // by path with slashes, as last read
	served map[string]crdinstall.Definition // by name, as the server has taken them
}

// crdFile is what one file has.
type crdFile struct {
	sum      [sha256.Size]byte
	sound    []crdinstall.Definition
	unsound  []string // names of CRDs that have errors
	garbled  bool     // its contents are unknown
	findings report.Report
	err      error
}

// newCRDFiles begins to watch files. Nothing that happens to them after
// that is missed.
func newCRDFiles(a *app, paths []string, excluded func(path string) bool) (*crdFiles, error) {
	f := &crdFiles{app: a, paths: paths, excluded: excluded, files: map[string]*crdFile{}, served: map[string]crdinstall.Definition{}}
	if len(paths) == 0 {
		return f, nil
	}
	var err error
	f.watch, err = watchFiles(paths, excluded)
	return f, err
}

func (f *crdFiles) close() {
	if f.watch != nil {
		f.watch.close()
	}
}

// changes tells when files may have changed. It never does if there are none.
func (f *crdFiles) changes() <-chan struct{} {
	if f.watch == nil {
		return nil
	}
	return f.watch.changes
}

// loading is the result of reading the files once.
type loading struct {
	touched         bool // a file has another text than before, or has gone
	loaded, changed []string
	gone            []string // no longer in the files
	breaks          []string // what changes do to objects that there are
	findings        report.Report
	errs            []error
}

// load brings the server up to date with the files.
func (f *crdFiles) load(ctx context.Context) *loading {
	l := &loading{}
	wanted := f.wanted(f.read(ctx, f.expand(l), l), l)
	var different []crdinstall.Definition
	for _, d := range wanted {
		if before, ok := f.served[d.Name]; !ok || !bytes.Equal(before.JSON, d.JSON) {
			different = append(different, d)
		}
	}
	f.apply(ctx, different, l)
	return l
}

// expand returns the files that there are now.
func (f *crdFiles) expand(l *loading) []string {
	var all []string
	for _, path := range f.paths {
		files, err := manifest.Expand([]string{path}, f.excluded)
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
func (f *crdFiles) read(ctx context.Context, paths []string, l *loading) []*crdFile {
	now := make([]*crdFile, len(paths))
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
	f.files = make(map[string]*crdFile, len(paths))
	for i, file := range now {
		name := filepath.ToSlash(paths[i])
		f.files[name] = file
		if former[name] == file {
			continue
		}
		l.touched = true
		l.findings.Diagnostics = append(l.findings.Diagnostics, file.findings.Diagnostics...)
		l.findings.Subjects = append(l.findings.Subjects, file.findings.Subjects...)
		l.errs = append(l.errs, file.err)
	}
	for path := range former {
		l.touched = l.touched || f.files[path] == nil
	}
	return now
}

// readFile returns what is in a file: before, if that is still so.
func (f *crdFiles) readFile(ctx context.Context, path string, before *crdFile) *crdFile {
	file, err := manifest.Open(path, nil)
	if errors.Is(err, os.ErrNotExist) {
		return &crdFile{} // it has gone since we looked
	}
	if err != nil {
		return &crdFile{garbled: true, err: err}
	}
	sum := sha256.Sum256(file.Text)
	if before != nil && before.err == nil && before.sum == sum {
		return before
	}
	d := &crdFile{sum: sum}
	// If the server does not answer now, it will when it is sent the new CRD.
	crds, err := cli.CheckFile(file, func(name string) []byte { old, _ := f.client.Current(ctx, name); return old })
	if err != nil {
		d.findings.Diagnostics = []report.Diagnostic{cli.SyntaxDiagnostic(file, err)}
		d.garbled = true
		return d
	}
	for _, c := range crds {
		d.add(c)
	}
	return d
}

// add adds a CRD to those of the file.
func (d *crdFile) add(c cli.Checked) {
	d.findings.Subjects = append(d.findings.Subjects, c.Subject)
	d.findings.Diagnostics = append(d.findings.Diagnostics, c.Errors...)
	if len(c.Errors) > 0 {
		d.unsound = append(d.unsound, c.Name)
		return
	}
	d.sound = append(d.sound, crdinstall.Definition{Name: c.Name, Source: c.File.Name, JSON: c.JSON, Beta: strings.HasSuffix(c.APIVersion, "/v1beta1")})
}

// wanted is what the server is to have. It notes what is not in the files any
// more.
func (f *crdFiles) wanted(files []*crdFile, l *loading) []crdinstall.Definition {
	var all []crdinstall.Definition
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
				l.errs = append(l.errs, fmt.Errorf("%s: %s is also in %s, which is used: remove one of them", d.Source, d.Name, first))
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

// atATime is how many CRDs are sent to the server at a time.
const atATime = 8

// apply sends CRDs to the server, and notes which it has taken.
func (f *crdFiles) apply(ctx context.Context, definitions []crdinstall.Definition, l *loading) {
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
func breaks(before, now crdinstall.Definition) []string {
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
		fmt.Fprintf(&text, "Reloaded: no CRD has changed\n")
	}
	for _, line := range l.breaks {
		fmt.Fprintf(&text, "%s\n", line)
	}
	for _, name := range l.gone {
		fmt.Fprintf(&text, "%[1]s was removed from the files and stays on the server: delete it with 'kubectl delete crd %[1]s'\n", name)
	}
	return text.String()
}

func (l *loading) failed() bool {
	return len(l.findings.Diagnostics) > 0 || errors.Join(l.errs...) != nil
}

// complain reports mistakes in files.
func (a *app) complain(l *loading) {
	if !l.failed() {
		return
	}
	if len(l.findings.Diagnostics) > 0 {
		l.findings.Noun = "CRD"
		l.findings.Sort()
		color, _ := a.Colored() // a word that is none means no colours
		_ = l.findings.Write(a.Err, "text", report.Options{Color: color && cli.IsTerminal(a.Err)})
	}
	for _, err := range l.errs {
		if err != nil {
			fmt.Fprintf(a.Err, "%s: %v\n", a.Name, err)
		}
	}
	fmt.Fprintln(a.Err, "The server keeps serving the previous CRDs.")
}
