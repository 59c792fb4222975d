package lsp

import (
	"errors"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxText bounds a file: commands read no larger ones.
const maxText = 64 << 20

// text is the content of a file, and where its lines begin. It does not change.
type text struct {
	content string
	lines   []int
}

func newText(content string) *text {
	t := &text{content: content, lines: make([]int, 1, strings.Count(content, "\n")+2)}
	for i := 0; i < len(content); i++ {
		n := strings.IndexAny(content[i:], "\r\n")
		if n < 0 {
			break
		}
		i += n
		if content[i] == '\r' && i+1 < len(content) && content[i+1] == '\n' {
			i++
		}
		t.lines = append(t.lines, i+1)
	}
	return t
}

// line returns the text of a line without its end.
func (t *text) line(n int) string {
	if n < 0 || n >= len(t.lines) {
		return ""
	}
	end := len(t.content)
	if n+1 < len(t.lines) {
		end = t.lines[n+1]
	}
	return strings.TrimRight(t.content[t.lines[n]:end], "\r\n")
}

// offset returns the byte that a position means. A position after the end of a line is its end; one
// between the halves of a surrogate pair is the beginning of the character.
func (t *text) offset(p Position) int {
	switch {
	case p.Line < 0 || p.Line == 0 && p.Character < 0:
		return 0
	case p.Line >= len(t.lines):
		return len(t.content)
	}
	at, units := t.lines[p.Line], p.Character
	for _, r := range t.line(p.Line) {
		if units -= utf16Length(r); units < 0 {
			break
		}
		at += max(utf8.RuneLen(r), 1)
	}
	return at
}

// position is the inverse of offset.
func (t *text) position(offset int) Position {
	offset = min(max(offset, 0), len(t.content))
	line := sort.SearchInts(t.lines, offset+1) - 1
	units := 0
	for _, r := range t.content[t.lines[line]:offset] {
		units += utf16Length(r)
	}
	return Position{Line: line, Character: units}
}

func (t *text) span(from, to int) Range { return Range{Start: t.position(from), End: t.position(to)} }

// utf16Length is the number of code units of a character. A byte that is not UTF-8 counts as one.
func utf16Length(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

var errLarge = errors.New("the file is larger than 64 MiB")

// apply returns the text after some changes, each to what those before it have left.
func (t *text) apply(changes []contentChange) (*text, error) {
	for _, c := range changes {
		// Bytes that are not UTF-8 cannot be in JSON: the editor has sent U+FFFD for them.
		if c.Range == nil {
			if len(c.Text) > maxText {
				return t, errLarge
			}
			t = newText(c.Text)
			continue
		}
		from, to := t.offset(c.Range.Start), t.offset(c.Range.End)
		if to < from {
			from, to = to, from
		}
		if len(t.content)-(to-from)+len(c.Text) > maxText {
			return t, errLarge
		}
		t = t.replace(from, to, c.Text)
	}
	return t, nil
}

// replace returns the text with another part. Lines before the change stay as they are.
func (t *text) replace(from, to int, with string) *text {
	content := t.content[:from] + with + t.content[to:]
	// A \r before the change may become part of a \r\n: begin at the line before.
	keep := max(sort.SearchInts(t.lines, from+1)-2, 0)
	begin := t.lines[keep]
	next := newText(content[begin:])
	lines := make([]int, keep, keep+len(next.lines))
	copy(lines, t.lines[:keep])
	for _, at := range next.lines {
		lines = append(lines, at+begin)
	}
	return &text{content: content, lines: lines}
}
