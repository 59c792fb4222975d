package corpus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Unpack writes the YAML files of the archive below dir as they are; if there is no archive, those of the modules. It
// returns how many files and bytes.
func Unpack(ctx context.Context, dir string, o Options) (files, bytes int, err error) {
	write := func(docs []document) error {
		for _, d := range docs {
			path := filepath.Join(dir, filepath.Clean("/"+d.path))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, d.data, 0o644); err != nil {
				return err
			}
			files++
			bytes += len(d.data)
		}
		return nil
	}
	if file := findArchive(o.Archive); file != "" {
		packed, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		docs, err := readTar(packed)
		if err != nil {
			return 0, 0, err
		}
		return files, bytes, write(docs)
	}
	for i, name := range Modules(o.Short) {
		from, err := module(name).download(ctx)
		if err != nil {
			return files, bytes, err
		}
		docs, err := readDir(from)
		if err != nil {
			return files, bytes, err
		}
		for j := range docs {
			docs[j].path = filepath.Join(fmt.Sprint(i), docs[j].path)
		}
		if err := write(docs); err != nil {
			return files, bytes, err
		}
	}
	return files, bytes, nil
}
