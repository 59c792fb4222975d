package lsp

import (
	"bytes"
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/crd/manifest"
)

// The bounds of a scan: a workspace may be a home folder.
const (
	maxFiles    = 50_000
	maxCRDFile  = 16 << 20
	maxResident = 400 // CRDs that stay in memory
)

// workspace knows the CRDs of open files, of folders, of the editor's settings, and of clusters.
type workspace struct {
	engine Engine

	mu         sync.Mutex
	scanned    bool
	generation int // counts changes of the set of kinds
	disk       map[string][]*stored
	remote     map[string][]*stored  // of clusters: files of the cache
	reading    bool                  // clusters, whose CRDs are not known yet
	first      map[GroupKind]*stored // of disk, or else of remote: the one to use
	open       map[string][]CRD      // by path: those of files that are open in the editor
	openKinds  map[GroupKind]CRD
	resident   []*stored // those that are loaded, the last used last
}

// stored is a CRD in a file. Only its place is kept, until an object of it is seen.
type stored struct {
	kind     GroupKind
	versions []string
	path     string
	number   int // among the CRDs of the file
	crd      CRD // nil until it is needed
}

func newWorkspace(e Engine) *workspace {
	return &workspace{engine: e, disk: make(map[string][]*stored), open: make(map[string][]CRD)}
}

// crdsOf reads the CRDs of a file. Files that cannot be read have none.
func (w *workspace) crdsOf(path string) []CRD {
	f, err := manifest.Open(path, nil)
	if err != nil || len(f.Text) > maxCRDFile || !bytes.Contains(f.Text, []byte("CustomResourceDefinition")) {
		return nil
	}
	f.Lines()
	objects, _ := manifest.Objects(f)
	var all []CRD
	for _, o := range objects {
		if crd := w.engine.CRD(o); crd != nil {
			all = append(all, crd)
		}
	}
	return all
}

// read brings what is known of a file up to date.
func (w *workspace) read(path string) {
	var found []*stored
	for i, crd := range w.crdsOf(path) {
		found = append(found, &stored{kind: crd.GroupKind(), versions: crd.Versions(), path: path, number: i})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(found) == 0 && len(w.disk[path]) == 0 || w.remote[path] != nil {
		return
	}
	w.set(path, found)
	w.index()
}

func (w *workspace) set(path string, found []*stored) {
	w.resident = slices.DeleteFunc(w.resident, func(s *stored) bool { return s.path == path })
	delete(w.disk, path)
	if len(found) > 0 {
		w.disk[path] = found
	}
}

// index finds out which CRD of several of a kind counts: the first by path, as long as the files are
// closed.
func (w *workspace) index() {
	w.generation++
	w.first = make(map[GroupKind]*stored)
	w.openKinds = make(map[GroupKind]CRD)
	for path, all := range w.open {
		for _, crd := range all {
			if before, ok := w.openKinds[crd.GroupKind()]; !ok || path < before.Document().File.Name {
				w.openKinds[crd.GroupKind()] = crd
			}
		}
	}
	for path, all := range w.disk {
		if _, ok := w.open[path]; ok {
			continue
		}
		for _, s := range all {
			if before, ok := w.first[s.kind]; !ok || path < before.path {
				w.first[s.kind] = s
			}
		}
	}
	for path, all := range w.remote {
		for _, s := range all {
			if before, ok := w.first[s.kind]; !ok || w.remote[before.path] != nil && path < before.path {
				w.first[s.kind] = s
			}
		}
	}
}

// setRemote notes the CRDs of clusters, which files of the cache have. Files of the workspace come first: they are what
// the user works on.
func (w *workspace) setRemote(paths []string) {
	found := make(map[string][]*stored)
	for _, path := range paths {
		for i, crd := range w.crdsOf(path) {
			found[path] = append(found[path], &stored{kind: crd.GroupKind(), versions: crd.Versions(), path: path, number: i})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resident = slices.DeleteFunc(w.resident, func(s *stored) bool { return w.remote[s.path] != nil })
	w.remote = found
	w.index()
}

// await says whether CRDs of clusters are still to come.
func (w *workspace) await(reading bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = reading
}

// setOpen notes the CRDs of a file that is open. It reports whether they are others than before.
func (w *workspace) setOpen(path string, crds []CRD) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.remote[path] != nil {
		return false // a file of the cache, opened to be read
	}
	before, ok := w.open[path]
	if ok && slices.Equal(before, crds) {
		return false
	}
	w.open[path] = crds
	if len(before) == 0 && len(crds) == 0 && len(w.disk[path]) == 0 {
		return false
	}
	w.index()
	return true
}

// close has the file itself count again.
func (w *workspace) close(path string) {
	w.mu.Lock()
	delete(w.open, path)
	w.mu.Unlock()
	w.read(path)
	w.mu.Lock()
	w.index()
	w.mu.Unlock()
}

// Find returns the CRD of a kind, or nil.
func (w *workspace) Find(kind GroupKind) CRD {
	w.mu.Lock()
	defer w.mu.Unlock()
	if crd, ok := w.openKinds[kind]; ok {
		return crd
	}
	s := w.first[kind]
	if s == nil {
		return nil
	}
	if s.crd != nil {
		if i := slices.Index(w.resident, s); i >= 0 {
			w.resident = append(slices.Delete(w.resident, i, i+1), s)
		}
		return s.crd
	}
	// Another goroutine must not load it too: it would be compiled twice.
	all := w.crdsOf(s.path)
	if s.number >= len(all) || all[s.number].GroupKind() != kind {
		return nil // the file has changed; the editor will say so
	}
	s.crd = all[s.number]
	if w.resident = append(w.resident, s); len(w.resident) > maxResident {
		w.resident[0].crd = nil
		w.resident = slices.Delete(w.resident, 0, 1)
	}
	return s.crd
}

// All returns the kinds of all CRDs, sorted.
func (w *workspace) All() []GroupKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]GroupKind, 0, len(w.first)+len(w.openKinds))
	for kind := range w.first {
		if _, ok := w.openKinds[kind]; !ok {
			all = append(all, kind)
		}
	}
	for kind := range w.openKinds {
		all = append(all, kind)
	}
	slices.SortFunc(all, func(a, b GroupKind) int {
		return strings.Compare(a.Group+"/"+a.Kind, b.Group+"/"+b.Kind)
	})
	return all
}

// versions returns the served versions of a kind without loading its CRD.
func (w *workspace) versions(kind GroupKind) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if crd, ok := w.openKinds[kind]; ok {
		return crd.Versions()
	}
	if s := w.first[kind]; s != nil {
		return s.versions
	}
	return nil
}

// state returns the number of changes so far, and whether all folders and clusters have been read.
func (w *workspace) state() (generation int, scanned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.generation, w.scanned && !w.reading
}

// scan reads all files of folders, and those that patterns of the settings name.
func (w *workspace) scan(ctx context.Context, folders, patterns []string, settings func(dir string) Settings) {
	found := make(map[string][]*stored)
	read := func(path string) {
		for i, crd := range w.crdsOf(path) {
			found[path] = append(found[path], &stored{kind: crd.GroupKind(), versions: crd.Versions(), path: path, number: i})
		}
	}
	files := 0
	patterns = slices.Clone(patterns)
	for _, dir := range folders {
		s := settings(dir)
		patterns = append(patterns, s.CRDFiles()...)
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				if e != nil && e.IsDir() {
					return fs.SkipDir
				}
				return nil
			case path != dir && (strings.HasPrefix(e.Name(), ".") || s.Excludes(path)):
				if e.IsDir() {
					return fs.SkipDir
				}
				return nil
			case e.IsDir() && e.Name() == "node_modules":
				return fs.SkipDir
			case !e.Type().IsRegular() || !manifest.IsManifest(path):
				return nil
			}
			if files++; files > maxFiles {
				return fs.SkipAll
			}
			read(path)
			return nil
		})
	}
	for _, pattern := range patterns {
		paths, _ := manifest.Expand([]string{pattern}, nil)
		for _, path := range paths {
			if _, known := found[path]; !known && ctx.Err() == nil {
				read(path)
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resident = nil
	w.disk = found
	w.scanned = true
	w.index()
}
