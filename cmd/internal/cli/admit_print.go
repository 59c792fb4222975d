package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rogpeppe/go-internal/diff"
	"go.yaml.in/yaml/v3"
	kubectl "sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/splice"
)

// isJSON reports whether a text is JSON, one value or several.
func isJSON(text []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func indentJSON(into *bytes.Buffer, object []byte) error {
	if err := json.Indent(into, object, "", "  "); err != nil {
		return err
	}
	return into.WriteByte('\n')
}

// yamlOf renders JSON as YAML in the same order. JSON is YAML; only the style
// changes.
func yamlOf(object []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(object, &node); err != nil {
		return nil, err
	}
	plain(&node)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// plain takes brackets and quotes away where kubectl's YAML needs none.
func plain(n *yaml.Node) {
	switch {
	case n.Kind != yaml.ScalarNode:
		if len(n.Content) > 0 {
			n.Style &^= yaml.FlowStyle
		}
	case n.Tag == "!!str":
		if text, err := kubectl.Marshal(n.Value); err == nil && !bytes.ContainsAny(text[:1], `"'`) {
			n.Style = 0
		}
	}
	for _, c := range n.Content {
		plain(c)
	}
}

// The colours of a comparison.
const (
	colorGone  = "\x1b[31m"
	colorCame  = "\x1b[32m"
	colorFaint = "\x1b[2m"
	colorNone  = "\x1b[0m"
)

func (p *printout) in(color, text string) string {
	if !p.color || text == "" {
		return text
	}
	return color + text + colorNone
}

// diff shows the lines of a file that change, with the reasons.
func (p *printout) diff(f *admitted) {
	if !f.altered() {
		return
	}
	text, ok := f.text()
	if !ok {
		p.list(f)
		return
	}
	went, came := f.reasons(text)
	fmt.Fprintf(&p.body, "%s\n", f.file.Name)
	width := len(strconv.Itoa(f.file.Lines()))
	for _, l := range comparedLines(f.file.Text, text) {
		number, why := strconv.Itoa(l.was), went[l.was]
		switch l.sign {
		case '+':
			number, why = "", came[l.is]
			delete(came, l.is)
		case '-':
			delete(went, l.was)
		case '@':
			fmt.Fprintf(&p.body, "%s\n", p.in(colorFaint, strings.Repeat(" ", width+2)+"…"))
			continue
		default:
			why = nil
		}
		p.line(l.sign, width, number, l.text, strings.Join(slices.Compact(why), "; "))
	}
}

// line prints a line of a file, or one to come.
func (p *printout) line(sign byte, width int, number, text, why string) {
	color := map[byte]string{'-': colorGone, '+': colorCame}[sign]
	text = visible(text)
	if color != "" {
		text = p.in(color, text)
	}
	if why != "" {
		text += p.in(colorFaint, "  ← "+visible(why))
	}
	head := fmt.Sprintf("%c %*s |", sign, width, number)
	if text != "" {
		head += " "
	}
	fmt.Fprintf(&p.body, "%s%s\n", head, text)
}

// visible replaces what could move the cursor or change colours.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return '·'
		}
		return r
	}, s)
}

// maxLineRead bounds how much of lines is read to find places in them: to count
// the columns of thousands of places in one long line takes too long.
const maxLineRead = 32 << 20

// line returns the number and the text of the line of an offset in an object,
// unless too much was read already.
func (f *admitted) line(o *admittedObject, offset int) (number int, text string, ok bool) {
	if f.read > maxLineRead {
		return 0, "", false
	}
	number = o.document.At(offset).Line
	text = f.file.Line(number)
	f.read += len(text)
	return number, text, true
}

// list shows the alterations one by one, for files whose text cannot be edited:
// aliases lead to some of them, or keys appear twice.
func (p *printout) list(f *admitted) {
	fmt.Fprintf(&p.body, "%s\n", f.file.Name)
	width := len(strconv.Itoa(f.file.Lines()))
	for i := range f.objects {
		o := &f.objects[i]
		for _, a := range o.alterations {
			if a.Op != splice.Insert {
				if number, text, ok := f.line(o, a.offset); ok {
					p.line('-', width, strconv.Itoa(number), text, a.reason)
				} else {
					p.line('-', width, "", a.Pointer, a.reason)
				}
			}
			if a.Op != splice.Remove {
				p.line('+', width, "", a.Pointer+": "+string(a.Value), a.reason)
			}
		}
		for _, offset := range o.repeated {
			if number, text, ok := f.line(o, offset); ok {
				p.line(' ', width, strconv.Itoa(number), text, "the key appears more than once; this value counts")
			}
		}
	}
}

// reasons returns why lines of the file go, and why lines of the new text come,
// by the numbers of lines.
func (f *admitted) reasons(text []byte) (went, came map[int][]string) {
	went, came = make(map[int][]string), make(map[int][]string)
	docs, err := manifest.Parse(&manifest.File{Name: f.file.Name, Text: text})
	if err != nil {
		return went, came
	}
	byIndex := make(map[int]*manifest.Document)
	for _, d := range docs {
		byIndex[d.Index] = d
	}
	lookups := 0
	for i := range f.objects {
		o := &f.objects[i]
		d := byIndex[o.document.Index]
		for _, a := range o.alterations {
			if a.Op == splice.Remove {
				if number, _, ok := f.line(o, a.offset); ok {
					went[number] = append(went[number], a.reason)
				}
			} else if d != nil && lookups < maxLookups {
				lookups++
				at, _ := d.LocateKey(o.document.List + a.Pointer)
				came[at.Line] = append(came[at.Line], a.reason)
			}
		}
	}
	return went, came
}

// comparedLine is a line of a comparison: one that stays (' '), goes ('-') or
// comes ('+'), or a gap ('@').
type comparedLine struct {
	sign    byte
	was, is int // the numbers of the line in the old and in the new text
	text    string
}

// comparedLines compares two texts and leaves out what is far from changes.
func comparedLines(was, is []byte) []comparedLine {
	var lines []comparedLine
	var old, now int
	begun := false
	for line := range strings.Lines(string(diff.Diff("was", was, "is", is))) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "@@ ") {
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d", &old, new(int), &now); err == nil && (begun || old > 1) {
				lines = append(lines, comparedLine{sign: '@'})
			}
			begun = true
			continue
		}
		if !begun || line == "" {
			continue
		}
		l := comparedLine{line[0], old, now, line[1:]}
		switch l.sign {
		case '-':
			old++
		case '+':
			now++
		case ' ':
			old++
			now++
		default:
			continue
		}
		lines = append(lines, l)
	}
	return lines
}
