package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// site is what is collected for Hugo.
type site struct {
	root, content, static, programs string
	pages                           int
}

// sources are the files of the repository that become pages. README.md is the first page, and that
// of its folder anywhere else.
var sources = []string{
	"*.md", "docs/*.md", "docs/guides/*.md", "docs/checks/*.md", "docs/design/*.md",
	"conformance/*.md", "controllers/*.md", "deploy/*.md", "examples/README.md", "examples/*/README.md",
}

// sections are folders without a page of their own.
var sections = map[string]string{"docs": "Documentation", "docs/guides": "Guides", "docs/design": "Design", "reference": "Reference"}

var (
	heading = regexp.MustCompile(`(?m)^# (.+)\n`)
	first   = regexp.MustCompile("(?m)^[A-Z*`\\[][^\n]*(?:\n[^\n]+)*")
)

// copyPages copies the pages and pictures of the repository.
func (s *site) copyPages(context.Context) error {
	for dir, title := range sections {
		if err := s.write(dir+"/_index.md", title, "", "", ""); err != nil {
			return err
		}
	}
	for _, pattern := range sources {
		files, err := filepath.Glob(filepath.Join(s.root, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			name, err := filepath.Rel(s.root, file)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			m := heading.FindSubmatchIndex(text)
			if m == nil {
				return fmt.Errorf("%s has no title: its first line must be # TITLE", name)
			}
			body := string(text[:m[0]]) + string(text[m[1]:])
			if err := s.write(pageName(name), string(text[m[2]:m[3]]), first.FindString(body), name, body); err != nil {
				return err
			}
		}
	}
	pictures := os.DirFS(filepath.Join(s.root, "docs", "pictures"))
	return fs.WalkDir(pictures, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".svg" && filepath.Ext(path) != ".png" {
			return err
		}
		data, err := fs.ReadFile(pictures, path)
		if err != nil {
			return err
		}
		return save(filepath.Join(s.static, "docs", "pictures", path), data)
	})
}

// pageName is the name that Hugo wants for the page of a file. A README is the page of its folder.
func pageName(name string) string {
	dir, base := filepath.Split(name)
	if base == "README.md" {
		return dir + "_index.md"
	}
	return strings.ToLower(dir + base)
}

// write adds a page. What it is about is its first paragraph; source is its file in the repository.
func (s *site) write(name, title, about, source, body string) error {
	path := filepath.Join(s.content, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && source == "" {
		return err
	}
	s.pages++
	head := fmt.Sprintf("---\ntitle: %q\ndescription: %q\nsource: %q\n---\n", plain(title), summary(about), source)
	return save(path, []byte(head+body))
}

var (
	markup  = regexp.MustCompile("`|\\*\\*|<!--.*?-->")
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	wrapped = regexp.MustCompile(`\s+`)
)

// plain is a text without Markdown.
func plain(text string) string {
	text = linked.ReplaceAllString(text, "$1")
	return strings.TrimSpace(wrapped.ReplaceAllString(markup.ReplaceAllString(text, ""), " "))
}

// summary is the beginning of a text, up to the end of a sentence.
func summary(text string) string {
	text = plain(text)
	if sentence, _, ok := strings.Cut(text, ". "); ok {
		return sentence + "."
	}
	return strings.TrimSuffix(text, ":")
}

func save(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
