package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// dump calls a function with each object of a file: a manifest, a list of any size that kubectl has
// printed in JSON, or a backup in a tar archive. Files without the mark need not be read.
func (a *App) dump(path, mark string, each func(*manifest.Document) error) error {
	switch {
	case strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".tgz"):
		return dumpArchive(path, mark, each)
	case isLargeList(path):
		return dumpList(path, each)
	}
	f, err := manifest.Open(path, a.In)
	if err != nil {
		return err
	}
	return dumpFile(f, mark, each)
}

func dumpFile(f *manifest.File, mark string, each func(*manifest.Document) error) error {
	if !bytes.Contains(f.Text, []byte(mark)) {
		return nil
	}
	objects, err := manifest.Objects(f)
	if err != nil {
		return err
	}
	for _, d := range objects {
		if err := each(d); err != nil {
			return err
		}
	}
	return nil
}

// largeList is the size from which a file in JSON is not read into memory as a whole.
const largeList = 32 << 20

func isLargeList(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > largeList && filepath.Ext(path) == ".json"
}

func dumpList(path string, each func(*manifest.Document) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	file := &manifest.File{Name: filepath.ToSlash(path)}
	var stop error
	err = cluster.Items(f, func(object []byte) error {
		d := &manifest.Document{File: file, JSON: slices.Clone(object)}
		var says struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		if json.Unmarshal(object, &says) == nil {
			d.APIVersion, d.Kind, d.Name, d.Namespace = says.APIVersion, says.Kind, says.Metadata.Name, says.Metadata.Namespace
		}
		stop = each(d)
		return stop
	})
	if err != nil && stop == nil {
		return fmt.Errorf("%s: read the list: %w", path, err)
	}
	return err
}

// maxEntry bounds a file of an archive.
const maxEntry = 64 << 20

// dumpArchive reads an archive file by file.
func dumpArchive(path, mark string, each func(*manifest.Document) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := filepath.ToSlash(path) + ":" + header.Name
		if header.Typeflag != tar.TypeReg || !manifest.IsManifest(header.Name) {
			continue
		}
		if header.Size > maxEntry {
			return fmt.Errorf("%s: larger than %d MiB", name, maxEntry>>20)
		}
		text, err := io.ReadAll(io.LimitReader(archive, maxEntry))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := dumpFile(&manifest.File{Name: name, Text: text}, mark, each); err != nil {
			return err
		}
	}
}
