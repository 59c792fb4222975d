package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// maxFile bounds a file: a CRD beyond the limits of etcd and of requests
// is a mistake in the path.
const maxFile = 64 << 20

// Expand returns the files that paths name: files, folders with all that is
// called *.yaml, *.yml or *.json below them, and patterns (with ** for folders
// of any depth) that the shell has not expanded. Left out are hidden files and
// folders, unless a pattern has a name that begins with a dot, and pipes, sockets
// and devices. Files keep the order of paths, and are sorted within one; none comes
// twice. skip leaves out files and folders that are not named themselves. A link that
// leads nowhere and a folder that cannot be read are among the files: [Open] says why.
func Expand(paths []string, skip func(path string) bool) ([]string, error) {
	var files []string
	seen := make(map[string]bool)
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			files = append(files, name)
		}
	}
	for _, p := range paths {
		if p == Stdin {
			add(p)
			continue
		}
		info, err := os.Stat(p)
		switch {
		case err == nil && info.IsDir():
			below, err := folder(p, skip)
			if err != nil {
				return nil, err
			}
			if len(below) == 0 {
				return nil, fmt.Errorf("%s: no file called *.yaml, *.yml or *.json is below this folder", p)
			}
			for _, f := range below {
				add(f)
			}
		case err == nil:
			add(p)
		case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(p, "*?[{"):
			matches, globErr := doublestar.FilepathGlob(p, doublestar.WithFilesOnly())
			if globErr != nil {
				return nil, fmt.Errorf("%s: %w", p, globErr)
			}
			if len(matches) == 0 {
				return nil, fmt.Errorf("%s: no file matches", p)
			}
			slices.Sort(matches)
			for _, f := range matches {
				if (skip == nil || !skip(f)) && isReadable(f) && !hidden(p, f) {
					add(f)
				}
			}
		default:
			return nil, err
		}
	}
	return files, nil
}

func folder(root string, skip func(string) bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil && path != root {
			files = append(files, path)
			return nil
		} else if err != nil {
			return err
		}
		hidden := path != root && strings.HasPrefix(e.Name(), ".")
		if e.IsDir() {
			if hidden || path != root && skip != nil && skip(path) {
				return filepath.SkipDir
			}
			return nil
		}
		if hidden || !IsManifest(path) || skip != nil && skip(path) || !isReadable(path) {
			return nil
		}
		files = append(files, path)
		return nil
	})
	return files, err
}

// isReadable reports whether a file is one that ends: no pipe, and no link to a folder. A
// link that leads nowhere is a mistake to report, and is not left out.
func isReadable(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// hidden reports whether a match of a pattern has a name that begins with a dot, and the
// pattern asks for none.
func hidden(pattern, path string) bool {
	base, names := doublestar.SplitPattern(filepath.ToSlash(pattern))
	rel, err := filepath.Rel(filepath.FromSlash(base), path)
	return err == nil && hasDot(filepath.ToSlash(rel)) && !hasDot(names)
}

// hasDot reports whether a name in a path begins with a dot.
func hasDot(path string) bool {
	return strings.HasPrefix(path, ".") || strings.Contains(path, "/.")
}

// IsManifest reports whether a file of a folder is one to read, by its name.
func IsManifest(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// Open reads a file, or stdin for the path "-".
func Open(path string, stdin io.Reader) (*File, error) {
	if path == Stdin {
		text, err := io.ReadAll(io.LimitReader(stdin, maxFile+1))
		return limited(&File{Name: "<stdin>", Text: text}, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", path, maxFile>>20)
	}
	text, err := os.ReadFile(path)
	return limited(&File{Name: filepath.ToSlash(path), Text: text}, err)
}

func limited(f *File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	if len(f.Text) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", f.Name, maxFile>>20)
	}
	return f, nil
}
