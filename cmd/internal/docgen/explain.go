package docgen

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/spelling"
)

// UnknownFieldError says that there is no field at a path.
type UnknownFieldError struct {
	Path    string // up to the unknown field
	Nearest string // the field beside it with the most similar name, or empty
	Known   []string
}

// Error implements error.
func (e *UnknownFieldError) Error() string {
	text := fmt.Sprintf("field %q does not exist", e.Path)
	switch {
	case e.Nearest != "":
		text += fmt.Sprintf("; did you mean %q?", e.Nearest)
	case len(e.Known) == 0:
		text += ": its parent has no fields"
	default:
		text += "; there are " + shorten(strings.Join(e.Known, ", "), 200)
	}
	return text
}

// Explain writes what there is to say about the field at a path, in the form of
// kubectl explain, with what the schema demands of it. Lists and maps are no
// steps of the path. If there is no such field, the error is an
// [UnknownFieldError].
func Explain(w io.Writer, d *crd.CRD, v *crd.Version, path []string, o Options) error {
	out := outlineVersion(d, v)
	f, err := out.Root.find(path)
	if err != nil {
		return err
	}
	e := explanation{new(bytes.Buffer)}
	e.line(0, "GROUP:      ", d.Group)
	e.line(0, "KIND:       ", d.Kind)
	e.line(0, "VERSION:    ", v.Name)
	e.line(0)
	if f != out.Root {
		e.line(0, "FIELD: ", f.Name, " <", f.Type, ">", flags(f))
		e.line(0)
	}
	e.about(f, o.Recursive)
	_, err = w.Write(e.w.Bytes())
	return err
}

// find follows a path from f.
func (f *field) find(path []string) (*field, error) {
	at := f
	for i, name := range path {
		var next *field
		var names []string
		for _, child := range at.Fields {
			names = append(names, child.Name)
			if child.Name == name {
				next = child
			}
		}
		if next == nil {
			e := &UnknownFieldError{Path: strings.Join(path[:i+1], "."), Known: names}
			if near := spelling.Nearest(name, slices.Values(names)); near != "" {
				e.Nearest = strings.Join(append(append([]string(nil), path[:i]...), near), ".")
			}
			return nil, e
		}
		at = next
	}
	return at, nil
}

// explanation writes for a terminal.
type explanation struct{ w *bytes.Buffer }

func (e explanation) line(indent int, parts ...string) {
	for range indent {
		e.w.WriteByte(' ')
	}
	for _, p := range parts {
		e.w.WriteString(visible(p))
	}
	e.w.WriteByte('\n')
}

// flags are what kubectl puts behind the type, and more of the kind.
func flags(f *field) string {
	text := ""
	if f.Required {
		text += " -required-"
	}
	if f.Immutable {
		text += " -immutable-"
	}
	if f.ReadOnly {
		text += " -read-only-"
	}
	return text
}

func (e explanation) about(f *field, recursive bool) {
	if len(f.Enum) > 0 {
		e.line(0, "ENUM:")
		for _, value := range f.Enum {
			e.line(4, bare(value))
		}
		e.line(0)
	}
	e.line(0, "DESCRIPTION:")
	if f.Description == "" {
		e.line(4, "<empty>")
	}
	e.wrapped(4, f.Description)
	e.line(0)
	if f.Default != "" || f.Example != "" || f.Docs != "" || len(f.Limits) > 0 {
		e.line(0, "CONSTRAINTS:")
		e.constraints(4, f)
		e.line(0)
	}
	if len(f.Rules) > 0 {
		e.line(0, "RULES:")
		for _, r := range f.Rules {
			e.rule(r)
		}
		e.line(0)
	}
	if len(f.Fields) == 0 {
		return
	}
	e.line(0, "FIELDS:")
	for _, child := range f.Fields {
		if recursive {
			e.tree(2, child)
		} else {
			e.field(child)
		}
	}
}

func (e explanation) constraints(indent int, f *field) {
	if f.Default != "" {
		e.line(indent, "default: ", bare(f.Default))
	}
	for _, l := range f.Limits {
		e.line(indent, l.String())
	}
	if f.Example != "" {
		e.line(indent, "example: ", bare(f.Example))
	}
	if f.Docs != "" {
		e.line(indent, "see: ", f.Docs)
	}
}

func (e explanation) rule(r rule) {
	indent := 4
	if r.Message != "" {
		e.wrapped(4, r.Message)
		indent = 6
	}
	text := strings.Join(strings.Fields(r.Text), " ")
	if r.Of != "" {
		text = r.Of + ": " + text
	}
	e.line(indent, text)
}

// field writes a field in a list of them.
func (e explanation) field(f *field) {
	e.line(2, f.Name, "\t<", f.Type, ">", flags(f))
	if len(f.Enum) > 0 {
		e.line(2, "enum: ", bareList(f.Enum))
	}
	e.constraints(4, f)
	for _, r := range f.Rules {
		text := r.Message
		if text == "" {
			text = strings.Join(strings.Fields(r.Text), " ")
		}
		e.line(4, "rule: ", text)
	}
	if f.Description == "" {
		e.line(4, "<no description>")
	}
	e.wrapped(4, f.Description)
	e.line(0)
}

// tree writes a field and those below it, a line each.
func (e explanation) tree(indent int, f *field) {
	more := ""
	if f.Default != "" {
		more += " default: " + bare(f.Default)
	}
	if len(f.Enum) > 0 {
		more += " enum: " + bareList(f.Enum)
	}
	e.line(indent, f.Name, "\t<", f.Type, ">", flags(f), more)
	for _, child := range f.Fields {
		e.tree(indent+2, child)
	}
	if f.Cut {
		e.line(indent+2, "...")
	}
}

// width is that of a terminal; kubectl uses it, too.
const width = 80

// wrapped writes a text in lines of limited width, its own structure kept.
func (e explanation) wrapped(indent int, text string) {
	for i, b := range prose(text) {
		if i > 0 && !b.List {
			e.line(0)
		}
		if b.Code != "" {
			for line := range strings.Lines(b.Code) {
				e.line(indent+2, strings.TrimRight(line, "\r\n"))
			}
			continue
		}
		for _, item := range b.Items {
			var words strings.Builder
			for _, s := range item {
				switch {
				case s.Code:
					words.WriteString("`" + s.Text + "`")
				case s.URL != s.Text && s.URL != "":
					words.WriteString(s.Text + " (" + s.URL + ")")
				default:
					words.WriteString(s.Text)
				}
			}
			if b.List {
				e.fold(indent, "- ", words.String())
			} else {
				e.fold(indent, "", words.String())
			}
		}
	}
}

// fold breaks text into lines; mark stands before the first.
func (e explanation) fold(indent int, mark, text string) {
	line := mark
	room := width - indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(mark) && len(line)+1+len(word) > room {
			e.line(indent, line)
			mark = strings.Repeat(" ", len(mark))
			line = mark
		}
		if len(line) > len(mark) {
			line += " "
		}
		line += word
	}
	if len(line) > len(mark) {
		e.line(indent, line)
	}
}

// visible replaces what would steer a terminal.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}
