package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sumsFile is in the form that sha256sum reads.
const sumsFile = "SHA256SUMS"

// entry is a file in an archive.
type entry struct {
	name, path string
	mode       fs.FileMode
}

// tarball writes a .tar.gz. All entries have the same time, and no owner.
func tarball(path string, entries []entry, at time.Time) error {
	return create(path, func(file io.Writer) error {
		packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
		if err != nil {
			return err
		}
		archive := tar.NewWriter(packed)
		for _, e := range byName(entries) {
			data, err := os.ReadFile(e.path)
			if err != nil {
				return err
			}
			header := &tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(data)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			if _, err := archive.Write(data); err != nil {
				return err
			}
		}
		return errors.Join(archive.Close(), packed.Close())
	})
}

// zipped writes a .zip, for Windows.
func zipped(path string, entries []entry, at time.Time) error {
	return create(path, func(file io.Writer) error {
		archive := zip.NewWriter(file)
		archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
		for _, e := range byName(entries) {
			data, err := os.ReadFile(e.path)
			if err != nil {
				return err
			}
			header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
			header.SetMode(e.mode)
			w, err := archive.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := w.Write(data); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

func byName(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

// create writes a file, and says so if the last of it could not be written.
func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// published are the paths of the files of a release, in the order of names, but that of the checksums.
func published(dir string) ([]string, error) {
	var paths []string
	for _, pattern := range []string{"espalier*_*", "espalier*.rb", "espalier.yaml"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// writeSums writes the checksums of all files of a release.
func writeSums(dir string) error {
	paths, err := published(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), filepath.Base(path))
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(lines.String()), 0o644)
}
