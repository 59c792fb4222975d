package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/fsnotify/fsnotify"

	"github.com/espalier-dev/espalier/crd/manifest"
)

const (
	// quietTime is how long nothing is to happen before files are read: editors
	// write in several steps.
	quietTime = 100 * time.Millisecond
	// restlessTime is how long to wait for that.
	restlessTime = time.Second
	// pollTime is how often to look where the system does not tell.
	pollTime = time.Second
)

// fileWatch tells when files, or those below folders, may have changed. It
// watches folders, because what editors do to a file is often to put another one
// in its place. If the system has no more watches to give, which editors use up at
// times, it looks every second instead.
type fileWatch struct {
	changes chan struct{} // holds one
	paths   []string
	roots   []string // absolute
	skip    func(string) bool
	notify  *fsnotify.Watcher
	quit    chan struct{}
}

func watchFiles(paths []string, skip func(string) bool) (*fileWatch, error) {
	w := &fileWatch{changes: make(chan struct{}, 1), paths: paths, skip: skip, quit: make(chan struct{})}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			base, _ := doublestar.SplitPattern(filepath.ToSlash(path))
			path = filepath.FromSlash(base)
		}
		root, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		w.roots = append(w.roots, root)
	}
	if w.observe() {
		go w.run()
	} else {
		go w.poll(w.look(), pollTime)
	}
	return w, nil
}

// observe asks the system to tell, and says whether it does.
func (w *fileWatch) observe() bool {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return false
	}
	if w.notify = notify; w.follow() != nil {
		_ = notify.Close() // it is of no use
		return false
	}
	return true
}

func (w *fileWatch) close() {
	close(w.quit)
	if w.notify != nil {
		_ = w.notify.Close() // nothing depends on it any more
	}
}

// tell signals that the files may have changed.
func (w *fileWatch) tell() {
	select {
	case w.changes <- struct{}{}:
	default: // a signal is pending already
	}
}

// look returns what files there are, and what they are like from outside.
func (w *fileWatch) look() string {
	var seen strings.Builder
	for _, path := range w.paths {
		files, err := manifest.Expand([]string{path}, w.skip)
		fmt.Fprintln(&seen, path, err)
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				fmt.Fprintln(&seen, file, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return seen.String()
}

// poll looks again and again, and tells when what it sees has changed and stays so.
func (w *fileWatch) poll(told string, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := told; ; {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		now := w.look()
		if now == last && now != told {
			told = now
			w.tell()
		}
		last = now
	}
}

// follow watches the folders that there are now: those below the roots, and the
// one that a root is in, or will be in again.
func (w *fileWatch) follow() error {
	var errs []error
	add := func(dir string) {
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s: %w", dir, err))
		}
	}
	for _, root := range w.roots {
		add(existing(filepath.Dir(root)))
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil || !e.IsDir():
				return nil // the reader of the file reports what cannot be read
			case path != root && (strings.HasPrefix(e.Name(), ".") || w.skip(path)):
				return filepath.SkipDir
			}
			add(path)
			return nil
		})
	}
	return errors.Join(errs...)
}

// existing is a folder, or the nearest one above that there is.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// run turns what happens to files into changes, until the watch is closed.
func (w *fileWatch) run() {
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	var since time.Time // of the first event that is not told yet
	for {
		select {
		case e, open := <-w.notify.Events:
			if !open {
				return
			}
			if !w.concerns(e) {
				continue
			}
		case _, open := <-w.notify.Errors: // events were lost
			if !open {
				return
			}
		case <-quiet.C:
			since = time.Time{}
			_ = w.follow() // a folder that cannot be watched is read all the same
			w.tell()
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		quiet.Reset(min(quietTime, restlessTime-time.Since(since)))
	}
}

// concerns says whether an event is about a root, something in it or something
// above it.
func (w *fileWatch) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	for _, root := range w.roots {
		if within(e.Name, root) || within(root, e.Name) {
			return true
		}
	}
	return false
}

// within says whether a path is a folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}
