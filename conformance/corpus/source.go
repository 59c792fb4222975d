package corpus

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// A document is one YAML file of a source.
type document struct {
	path string
	data []byte
}

// module is a pinned Go module, path@version.
type module string

func (m module) name() string { return string(m) }

func (m module) load(ctx context.Context, o Options, say func(string, ...any)) (*part, error) {
	key := "module-" + string(m)
	if p, ok := readCache(key, o); ok {
		return p, nil
	}
	began := time.Now()
	say("corpus %s: downloading", m)
	dir, err := m.download(ctx)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	docs, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	p := convertAll(string(m), docs)
	p.source.Download = took
	p.source.Convert = time.Since(began) - took
	return p, writeCache(key, p)
}

// download fetches the module through the go command, which verifies it, and returns its folder. It runs outside any
// module, so that the pins stay out of this module's own requirements.
func (m module) download(ctx context.Context) (string, error) {
	tmp, err := os.MkdirTemp("", "espalier-corpus-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", string(m))
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PWD="+tmp)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var info struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &info); jsonErr == nil && info.Error != "" {
		return "", errors.New(info.Error)
	}
	if err != nil {
		return "", fmt.Errorf("go mod download: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if info.Dir == "" {
		return "", errors.New("go mod download: no folder in its answer")
	}
	return info.Dir, nil
}

// readDir reads the YAML files below dir that mention CRDs.
func readDir(dir string) ([]document, error) {
	var docs []document
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isYAML(path) {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && mentionsCRD(data) {
			rel, _ := filepath.Rel(dir, path)
			docs = append(docs, document{rel, data})
		}
		return err
	})
	return docs, err
}

func isYAML(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".yaml" || ext == ".yml"
}

func mentionsCRD(data []byte) bool { return bytes.Contains(data, []byte("CustomResourceDefinition")) }

// archive is a gzipped tar of YAML files.
type archive string

func (a archive) name() string { return filepath.Base(string(a)) }

func (a archive) load(_ context.Context, o Options, say func(string, ...any)) (*part, error) {
	packed, err := os.ReadFile(string(a))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(packed)
	key := "archive-" + hex.EncodeToString(sum[:8])
	if p, ok := readCache(key, o); ok {
		return p, nil
	}
	began := time.Now()
	say("corpus %s: converting", a.name())
	docs, err := readTar(packed)
	if err != nil {
		return nil, err
	}
	p := convertAll(a.name(), docs)
	p.source.Convert = time.Since(began)
	return p, writeCache(key, p)
}

func readTar(packed []byte) ([]document, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var docs []document
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || !isYAML(h.Name) {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		if mentionsCRD(data) {
			docs = append(docs, document{h.Name, data})
		}
	}
	sort.Slice(docs, func(i, j int) bool { return docs[i].path < docs[j].path })
	return docs, nil
}
