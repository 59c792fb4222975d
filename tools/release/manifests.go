package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"unicode"
)

//go:embed formula.rb.tmpl krew.yaml.tmpl
var templates embed.FS

// manifest is what a package manager that downloads archives needs to know.
type manifest struct {
	Program, Class, Summary, Description, Homepage, Licence, Version string

	archives map[string]download // by platform
}

// download is an archive of the release.
type download struct {
	System, Machine, URL, SHA256, Base, Binary string
}

// Archives are the archives of systems, in the order of platforms; templates call it.
func (m manifest) Archives(systems ...string) []download {
	var found []download
	for _, platform := range platforms {
		system, _, _ := strings.Cut(platform, "/")
		for _, s := range systems {
			if d, ok := m.archives[platform]; ok && s == system {
				found = append(found, d)
			}
		}
	}
	return found
}

// manifests writes a Homebrew formula of each program and the krew manifest of the kubectl plugin, with the checksums
// of the archives that were made.
func (r *release) manifests(programs []built) error {
	all := map[string]manifest{}
	for _, b := range programs {
		m, ok := all[b.program]
		if !ok {
			m = manifest{Program: b.program, Class: class(b.program), Summary: summaries[b.program], Description: descriptions[b.program], Homepage: homepage, Licence: licence,
				Version: strings.TrimPrefix(r.version, "v"), archives: map[string]download{}}
			all[b.program] = m
		}
		data, err := os.ReadFile(filepath.Join(r.out, b.archive))
		if err != nil {
			return err
		}
		system, machine, _ := strings.Cut(b.platform, "/")
		m.archives[b.platform] = download{System: system, Machine: machine, URL: r.urlOf(b.archive), SHA256: fmt.Sprintf("%x", sha256.Sum256(data)), Base: b.base, Binary: filepath.Base(b.binary)}
	}
	for name, m := range all {
		if len(m.Archives("linux", "darwin")) > 0 {
			if err := r.render("formula.rb.tmpl", name+".rb", m); err != nil {
				return err
			}
		}
	}
	return r.render("krew.yaml.tmpl", "espalier.yaml", all["espalier"])
}

// urlOf is where a file of the release is downloaded from.
func (r *release) urlOf(name string) string {
	return homepage + "/releases/download/" + r.version + "/" + name
}

func (r *release) render(source, target string, m manifest) error {
	t, err := template.New(source).Funcs(template.FuncMap{"indent": indent}).ParseFS(templates, source)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, m); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, target), out.Bytes(), 0o644)
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// class is the name that Homebrew expects of a formula: espalier-server is EspalierServer.
func class(program string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(program, "-") {
		name.WriteRune(unicode.ToUpper(rune(word[0])))
		name.WriteString(word[1:])
	}
	return name.String()
}
