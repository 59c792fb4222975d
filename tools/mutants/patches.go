package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// patches reads mutants that people have written: bugs that tests once did not notice. They
// are always tested, if their package is. A file says what is wrong, and has three parts:
//
//	-- file --  of the repository
//	-- was --   text that is in the file once
//	-- is --    what takes its place
func (s *source) patches(root, dir string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		m, err := s.patch(root, archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if m != nil {
			m.ID = m.Package + " patch " + strings.TrimSuffix(filepath.Base(path), ".txt")
			all = append(all, m)
		}
	}
	return all, nil
}

// patch returns nil if the package is not read.
func (s *source) patch(root string, archive *txtar.Archive) (*mutant, error) {
	parts := map[string][]byte{}
	for _, part := range archive.Files {
		parts[part.Name] = bytes.TrimSuffix(part.Data, []byte("\n"))
	}
	if len(parts) != 3 || len(parts["was"]) == 0 || len(bytes.TrimSpace(archive.Comment)) == 0 {
		return nil, fmt.Errorf("a patch says what is wrong and has the parts file, was and is")
	}
	name := filepath.ToSlash(filepath.Dir(string(parts["file"])))
	if s.all[name] == nil {
		return nil, nil
	}
	file := filepath.Join(root, string(parts["file"]))
	content := s.contents[file]
	if n := bytes.Count(content, parts["was"]); n != 1 {
		return nil, fmt.Errorf("%s has the text %d times, not once", parts["file"], n)
	}
	at := bytes.Index(content, parts["was"])
	m := &mutant{
		Package: name, File: file, Line: 1 + bytes.Count(content[:at], []byte("\n")),
		from: at, to: at + len(parts["was"]), text: string(parts["is"]),
	}
	if !s.compiles(m) {
		return nil, fmt.Errorf("%s does not compile with it", parts["file"])
	}
	return m, nil
}
