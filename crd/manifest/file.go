package manifest

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"
)

// Position is a place in a file. Lines and columns count from 1, columns in
// characters. The end is exclusive and on the same line.
type Position struct {
	Line, Column, EndColumn int
}

// File is a text file and where its lines begin.
type File struct {
	Name  string // as the user wrote it, or found below what the user wrote
	Text  []byte
	lines []int // offsets; made when first needed
}

// starts returns the offsets of the beginnings of lines.
func (f *File) starts() []int {
	if f.lines == nil {
		f.lines = append(f.lines, 0)
		for at := 0; ; {
			n := bytes.IndexByte(f.Text[at:], '\n')
			if n < 0 {
				break
			}
			at += n + 1
			f.lines = append(f.lines, at)
		}
	}
	return f.lines
}

// Line returns the text of a line without its end, or nothing if there is no
// such line.
func (f *File) Line(n int) string {
	starts := f.starts()
	if n < 1 || n > len(starts) {
		return ""
	}
	end := len(f.Text)
	if n < len(starts) {
		end = starts[n] - 1
	}
	return string(bytes.TrimSuffix(f.Text[starts[n-1]:end], []byte("\r")))
}

// Lines returns the number of lines; a last line without an end counts.
func (f *File) Lines() int {
	n := len(f.starts())
	if n > 1 && f.lines[n-1] == len(f.Text) {
		n--
	}
	return n
}

// offset returns the place of a line and column in the text, or the text's end.
func (f *File) offset(line, column int) int {
	starts := f.starts()
	if line < 1 || line > len(starts) {
		return len(f.Text)
	}
	at := starts[line-1]
	for ; column > 1 && at < len(f.Text) && f.Text[at] != '\n'; column-- {
		_, n := utf8.DecodeRune(f.Text[at:])
		at += n
	}
	return at
}

// place returns the line and column of an offset in the text.
func (f *File) place(offset int) (line, column int) {
	starts := f.starts()
	offset = min(offset, len(f.Text))
	line = sort.SearchInts(starts, offset+1)
	return line, utf8.RuneCount(f.Text[starts[line-1]:offset]) + 1
}

// token makes the position of what stands at a line and column: a quoted
// string, a bracket, or a word up to what ends a plain scalar or a key.
func (f *File) token(line, column int) Position {
	text := f.Line(line)
	from := 0
	for c := column; c > 1 && from < len(text); c-- {
		_, n := utf8.DecodeRuneInString(text[from:])
		from += n
	}
	length := utf8.RuneCountInString(text[from : from+tokenLength(text[from:])])
	return Position{Line: line, Column: column, EndColumn: column + max(length, 1)}
}

func tokenLength(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case '"', '\'':
		for i := 1; i < len(s); i++ {
			if s[0] == '"' && s[i] == '\\' {
				i++
			} else if s[i] == s[0] {
				return i + 1
			}
		}
		return len(s)
	case '{', '[', '|', '>':
		return 1
	}
	for i := range len(s) {
		switch s[i] {
		case ':':
			if i+1 == len(s) || s[i+1] == ' ' {
				return i
			}
		case '#':
			if i > 0 && s[i-1] == ' ' {
				return trimmed(s[:i])
			}
		case ',', '}', ']':
			return trimmed(s[:i])
		}
	}
	return trimmed(s)
}

func trimmed(s string) int { return len(strings.TrimRight(s, " \t")) }
