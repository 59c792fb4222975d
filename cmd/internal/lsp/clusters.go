package lsp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
)

// The bounds of reading clusters.
const (
	clusterAge  = 10 * time.Minute // after which opening a file reads them again
	clusterWait = time.Minute      // for one of them
	maxClusters = 4                // folders of a workspace may name several
)

// clusters is what the server knows of the clusters of the settings.
type clusters struct {
	sources []cluster.Source
	began   time.Time // the last read
	cancel  context.CancelFunc
	said    map[cluster.Source]bool // the user knows that it cannot be read
}

// kubeconfig returns the path that the editor's settings mean.
func (s *Server) kubeconfig(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	if below, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, below)
		}
	}
	if len(s.folders) > 0 {
		return filepath.Join(s.folders[0], path)
	}
	return path
}

// sources are the clusters that the settings name: the editor's, or else those of the folders.
func (s *Server) sources() (all []cluster.Source) {
	if s.options.cluster != (cluster.Source{}) {
		return []cluster.Source{s.options.cluster}
	}
	for _, dir := range s.folders {
		source := cluster.Source{Context: s.settingsOf(dir).Context()}
		if source.Context != "" && !slices.Contains(all, source) && len(all) < maxClusters {
			all = append(all, source)
		}
	}
	return all
}

// readClusters reads the CRDs of clusters in the background, if the settings have changed, or if a while has passed since
// the last time. The caller holds the mutex.
func (s *Server) readClusters() {
	sources, c := s.sources(), &s.clusters
	if slices.Equal(sources, c.sources) && (len(sources) == 0 || time.Since(c.began) < clusterAge) {
		return
	}
	if c.cancel != nil {
		c.cancel()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	first := !slices.Equal(sources, c.sources)
	c.sources, c.began, c.cancel = sources, time.Now(), cancel
	if first {
		s.workspace.await(true)
	}
	s.running.Go(func() {
		defer s.survive("reading the clusters")
		defer cancel()
		s.loadClusters(ctx, sources)
		if ctx.Err() == nil {
			s.workspace.await(false)
			s.scheduleOthers(nil)
		}
	})
}

// loadClusters has the CRDs count that the cache has, and then those that the clusters have now.
func (s *Server) loadClusters(ctx context.Context, sources []cluster.Source) {
	folders := make([]string, len(sources))
	use := func() {
		var paths []string
		for _, dir := range folders {
			files, _ := cluster.Files(dir)
			paths = append(paths, files...)
		}
		if ctx.Err() == nil {
			s.workspace.setRemote(paths)
			s.scheduleOthers(nil)
		}
	}
	cache, err := cluster.UserCache()
	failed := make([]error, len(sources))
	for i, source := range sources {
		if failed[i] = err; err == nil {
			folders[i], failed[i] = cache.Folder(ctx, source)
		}
	}
	use()
	changed := false
	for i, source := range sources {
		if failed[i] == nil {
			var other bool
			within, cancel := context.WithTimeoutCause(ctx, clusterWait, fmt.Errorf("kubectl took longer than %v", clusterWait))
			other, failed[i] = cache.Refresh(within, source, folders[i])
			cancel()
			changed = changed || other
		}
		if ctx.Err() == nil {
			s.sayCluster(source, folders[i], failed[i])
		}
	}
	if changed {
		use()
	}
}

// sayCluster tells the user that a cluster cannot be read, once until it can be read again.
func (s *Server) sayCluster(source cluster.Source, folder string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.clusters
	if err == nil {
		delete(c.said, source)
		return
	}
	if c.said[source] {
		return
	}
	if c.said == nil {
		c.said = make(map[cluster.Source]bool)
	}
	c.said[source] = true
	text := err.Error() + ". Its CRDs are not known"
	if files, read := cluster.Files(folder); len(files) > 0 {
		text = fmt.Sprintf("%v. Its CRDs are those of %s", err, read.Format("2006-01-02 15:04"))
	}
	s.notify("window/showMessage", messageParams{Type: messageWarning, Message: text})
}
