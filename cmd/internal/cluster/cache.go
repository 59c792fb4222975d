package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of a cache, together with maxBytes.
const (
	maxFolders = 4
	maxCRDs    = 10_000
)

// Cache keeps the CRDs of clusters in files.
type Cache struct{ dir string }

// UserCache is the cache in the user's cache folder.
func UserCache() (Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, err
	}
	return Cache{filepath.Join(dir, "espalier", "clusters")}, nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// Folder is where the CRDs of a cluster are kept. It may not exist yet.
func (c Cache) Folder(ctx context.Context, s Source) (string, error) {
	name, server, err := s.identity(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(name + "\n" + server))
	readable := strings.Trim(unfit.ReplaceAllString(name, "-"), "-")
	return filepath.Join(c.dir, readable[:min(len(readable), 60)]+"-"+hex.EncodeToString(sum[:8])), nil
}

// Files lists the files of a folder, each with a CRD, and when they were read.
func Files(folder string) (paths []string, read time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, time.Time{}
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" && e.Type().IsRegular() && len(paths) < maxCRDs {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	if info, err := os.Stat(folder); err == nil {
		read = info.ModTime()
	}
	return paths, read
}

// safeName is what names of CRDs look like. Others do not become names of files.
var safeName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

const maxName = 253

// Refresh reads the CRDs of a cluster into a folder, and reports whether one is other than before.
func (c Cache) Refresh(ctx context.Context, s Source, folder string) (changed bool, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return false, err
	}
	seen := make(map[string]bool)
	err = Read(ctx, s, func(name string, text []byte) error {
		if len(name) > maxName || !safeName.MatchString(name) || len(seen) >= maxCRDs {
			return nil
		}
		seen[name+".json"] = true
		written, err := replace(filepath.Join(folder, name+".json"), text)
		changed = changed || written
		return err
	})
	if err != nil {
		return changed, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return changed, err
	}
	for _, e := range entries {
		if seen[e.Name()] || strings.HasPrefix(e.Name(), temporary) && recent(e) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			return changed, err
		}
		changed = true
	}
	now := time.Now()
	_ = os.Chtimes(folder, now, now)
	return changed, c.trim(folder)
}

const temporary = "tmp-"

// recent reports whether another process may be writing the file.
func recent(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) < time.Hour
}

// replace writes a file, in a form that people can read, unless it has the text already.
func replace(path string, text []byte) (bool, error) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "  "); err != nil {
		return false, err
	}
	pretty.WriteByte('\n')
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, pretty.Bytes()) {
		return false, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return false, err
	}
	_, err = f.Write(pretty.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err == nil, err
}

// trim removes the folders that were read least recently. One stays in any case.
func (c Cache) trim(stays string) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	type folder struct {
		path string
		read time.Time
	}
	var all []folder
	for _, e := range entries {
		info, err := e.Info()
		if path := filepath.Join(c.dir, e.Name()); err == nil && path != stays {
			all = append(all, folder{path, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b folder) int { return cmp.Or(b.read.Compare(a.read), strings.Compare(a.path, b.path)) })
	for _, f := range all[min(len(all), maxFolders-1):] {
		if err := os.RemoveAll(f.path); err != nil {
			return err
		}
	}
	return nil
}
