package lsp

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestPositions(t *testing.T) {
	x := newText("a😀b\r\nü\rz\n\nend")
	for _, tt := range []struct {
		at   Position
		want int
	}{
		{Position{0, 0}, 0},
		{Position{0, 1}, 1},
		{Position{0, 2}, 1}, // between the halves of the pair
		{Position{0, 3}, 5},
		{Position{0, 4}, 6},
		{Position{0, 99}, 6},
		{Position{1, 0}, 8},
		{Position{1, 1}, 10},
		{Position{2, 1}, 12},
		{Position{3, 0}, 13},
		{Position{4, 3}, 17},
		{Position{9, 9}, 17},
		{Position{-1, 5}, 0},
	} {
		if got := x.offset(tt.at); got != tt.want {
			t.Errorf("offset of %v is %d, want %d", tt.at, got, tt.want)
		}
	}
	for i := range x.content {
		if x.content[i] == '\n' && i > 0 && x.content[i-1] == '\r' {
			continue // between the two no position exists
		}
		if got := x.offset(x.position(i)); got != i {
			t.Errorf("offset %d is position %v, which is offset %d", i, x.position(i), got)
		}
	}
}

// units is the text as an editor has it.
func units(s string) []uint16 { return utf16.Encode([]rune(s)) }

// FuzzEdits applies random edits, and compares the text with that of an editor that counts in UTF-16.
func FuzzEdits(f *testing.F) {
	f.Add("a😀b\r\nü\rz\n\nend", []byte{1, 2, 3, 200, 5, 6, 7, 8, 0, 1, 2, 3})
	f.Add("", []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, content string, script []byte) {
		if !utf8.ValidString(content) || len(content) > 1<<12 || len(script) > 1<<8 {
			return
		}
		inserts := []string{"", "x", "\r", "\n", "\r\n", "😀", "---\n", "a: b\n", "ü\r"}
		server, editor := newText(content), units(content)
		for ; len(script) >= 4; script = script[4:] {
			from, to := boundary(editor, int(script[0])*7), boundary(editor, int(script[1])*7)
			from, to = min(from, to), max(from, to)
			insert := inserts[int(script[2])%len(inserts)]
			r := Range{editorPosition(editor, from), editorPosition(editor, to)}
			editor = slices.Concat(editor[:from], units(insert), editor[to:])
			var err error
			if server, err = server.apply([]contentChange{{Range: &r, Text: insert}}); err != nil {
				t.Fatal(err)
			}
			if want := string(utf16.Decode(editor)); server.content != want {
				t.Fatalf("the server has %q, the editor %q", server.content, want)
			}
			if fresh := newText(server.content); !slices.Equal(fresh.lines, server.lines) {
				t.Fatalf("lines of %q are %v, want %v", server.content, server.lines, fresh.lines)
			}
			whole := ""
			for _, c := range cut("x", server.content, nil) {
				if c.offset != len(whole) {
					t.Fatalf("a chunk is at %d, not %d", c.offset, len(whole))
				}
				whole += c.content
			}
			if whole != server.content {
				t.Fatalf("chunks are %q, not %q", whole, server.content)
			}
		}
	})
}

// boundary moves an index of the editor's text out of pairs: surrogates, and \r\n.
func boundary(text []uint16, i int) int {
	i %= len(text) + 1
	if i > 0 && i < len(text) && (utf16.IsSurrogate(rune(text[i])) && text[i] >= 0xDC00 || text[i] == '\n' && text[i-1] == '\r') {
		i--
	}
	return i
}

func editorPosition(text []uint16, at int) Position {
	p := Position{}
	for i := 0; i < at; i++ {
		p.Character++
		if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			p = Position{Line: p.Line + 1}
		}
	}
	return p
}

func TestUnchangedChunksAreKept(t *testing.T) {
	docs := []string{"a: 1\n", "---\nb: 2\n", "---\nc: 3\n"}
	before := cut("x", strings.Join(docs, ""), nil)
	after := cut("x", "---\nnew: 0\n"+"---\n"+docs[0]+docs[1]+"---\nc: 4\n", before)
	if len(after) != 4 || after[2].parsedChunk != before[1].parsedChunk || after[3].parsedChunk == before[2].parsedChunk {
		t.Errorf("%d chunks: %+v", len(after), after)
	}
}
