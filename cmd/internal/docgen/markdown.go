package docgen

import (
	"bytes"
	"io"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/markdown"
)

// Markdown writes a page about a CRD: for each version what it is, and a
// table of fields for each object in it.
func Markdown(w io.Writer, d *crd.CRD, o Options) error {
	list, err := outline(d, o)
	if err != nil {
		return err
	}
	m := article{new(bytes.Buffer)}
	m.line("# ", inline(d.Kind))
	m.line()
	m.names(d)
	for _, v := range list {
		m.version(d, v)
	}
	_, err = w.Write(m.w.Bytes())
	return err
}

type article struct{ w *bytes.Buffer }

func (m article) line(parts ...string) {
	for _, p := range parts {
		m.w.WriteString(p)
	}
	m.w.WriteByte('\n')
}

func (m article) names(d *crd.CRD) {
	scope := "Cluster"
	if d.Namespaced {
		scope = "Namespaced"
	}
	m.line("| | |")
	m.line("|---|---|")
	m.line("| Group | ", codeCell(d.Group), " |")
	m.line("| Kind | ", codeCell(d.Kind), " |")
	m.line("| Scope | ", scope, " |")
	names := []string{codeCell(d.Plural)}
	if d.Singular != "" {
		names = append(names, codeCell(d.Singular))
	}
	for _, s := range d.ShortNames {
		names = append(names, codeCell(s))
	}
	m.line("| Names | ", strings.Join(names, ", "), " |")
	if len(d.Categories) > 0 {
		var list []string
		for _, c := range d.Categories {
			list = append(list, codeCell(c))
		}
		m.line("| Categories | ", strings.Join(list, ", "), " |")
	}
}

func (m article) version(d *crd.CRD, v *version) {
	m.line()
	m.line("## ", inline(v.APIVersion))
	var facts []string
	for _, f := range []struct {
		is   bool
		text string
	}{
		{v.Storage, "stored version"}, {!v.Served, "not served"},
		{v.Status, "status subresource"}, {v.Scale != nil, "scale subresource"},
	} {
		if f.is {
			facts = append(facts, f.text)
		}
	}
	if len(facts) > 0 {
		m.line()
		m.line("*", strings.Join(facts, " · "), "*")
	}
	if v.Deprecation != "" {
		m.line()
		m.line("> **Deprecated.** ", inline(v.Deprecation))
	}
	if v.Root.Description != "" {
		m.line()
		m.paragraphs(v.Root.Description)
	}
	m.line()
	var example strings.Builder
	for _, l := range skeleton(v, d.Kind, d.Namespaced) {
		example.WriteString(l.String() + "\n")
	}
	m.fence("yaml", example.String())
	m.fields(v, v.Root)
	m.columns(v.Columns)
}

// fields writes the table of the fields of an object, and those of the objects
// in it.
func (m article) fields(v *version, f *field) {
	if len(f.Fields) == 0 {
		return
	}
	name := f.Path
	if f.Path == "" {
		name = f.Name
	}
	m.line()
	m.line("### ", heading(v, name))
	if about := demands(f); about != "" && f == v.Root {
		m.line()
		m.line(about)
	}
	m.line()
	m.line("| Field | Type | Description |")
	m.line("|---|---|---|")
	for _, child := range f.Fields {
		m.row(v, child)
	}
	for _, child := range f.Fields {
		m.fields(v, child)
	}
}

// heading is the text of a heading, which is also the name of a link to it.
func heading(v *version, path string) string { return markdown.Code(v.Name + " " + path) }

func (m article) row(v *version, f *field) {
	kind := codeCell(f.Type)
	if len(f.Fields) > 0 && f.Path != "" {
		kind = "[" + kind + "](#" + slug(v.Name+" "+f.Path) + ")"
	}
	name := codeCell(f.Name)
	if f.Required {
		name += "<br>**required**"
	}
	var about []string
	if f.Description != "" {
		about = append(about, cell(f.Description))
	}
	if text := demands(f); text != "" {
		about = append(about, text)
	}
	if f.Cut {
		about = append(about, "Fields nested this deep are left out.")
	}
	m.line("| ", name, " | ", kind, " | ", strings.Join(about, "<br>"), " |")
}

// demands lists everything that is demanded of a field, for a cell.
func demands(f *field) string {
	var list []string
	add := func(name, value string) { list = append(list, "**"+name+":** "+value) }
	if f.Default != "" {
		add("Default", codeCell(bare(f.Default)))
	}
	if len(f.Enum) > 0 {
		var values []string
		for _, value := range f.Enum {
			values = append(values, codeCell(bare(value)))
		}
		add("One of", strings.Join(values, ", "))
	}
	if f.Immutable {
		list = append(list, "**Immutable**")
	}
	if f.ReadOnly {
		list = append(list, "**Read-only**")
	}
	for _, l := range f.Limits {
		name := l.Name
		if l.Of != "" {
			name = l.Of + ", " + name
		}
		switch {
		case l.Value == "":
			list = append(list, "**"+capital(cell(name))+"**")
		case l.Code:
			add(capital(cell(name)), codeCell(l.Value))
		default:
			add(capital(cell(name)), cell(l.Value))
		}
	}
	if f.Example != "" {
		add("Example", codeCell(bare(f.Example)))
	}
	for _, r := range f.Rules {
		text := codeCell(r.Text)
		if r.Message != "" {
			text = cell(r.Message) + " " + text
		}
		if r.Of != "" {
			text = r.Of + ": " + text
		}
		add("Rule", text)
	}
	if f.Docs != "" {
		add("See", cell(f.Docs))
	}
	return strings.Join(list, "<br>")
}

func (m article) columns(list []crd.Column) {
	if len(list) == 0 {
		return
	}
	m.line()
	m.line("### Columns")
	m.line()
	m.line("| Column | Type | Path | Description |")
	m.line("|---|---|---|---|")
	for _, c := range list {
		name := cell(c.Name)
		if c.Priority > 0 {
			name += " (wide)"
		}
		m.line("| ", name, " | ", cell(c.Type), " | ", codeCell(c.JSONPath), " | ", cell(c.Description), " |")
	}
}

// paragraphs writes a description as it is structured.
func (m article) paragraphs(text string) {
	for i, b := range prose(text) {
		if i > 0 {
			m.line()
		}
		if b.Code != "" {
			m.fence("", b.Code)
			continue
		}
		for _, item := range b.Items {
			if b.List {
				m.w.WriteString("- ")
			}
			m.line(spansText(item))
		}
	}
}

// fence writes text as it is.
func (m article) fence(language, text string) {
	fence := markdown.Fence(text)
	m.line(fence, language)
	m.line(strings.TrimRight(text, "\n"))
	m.line(fence)
}
