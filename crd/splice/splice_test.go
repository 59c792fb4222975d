package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestCases runs the archives of testdata: in.yaml or in.json, edits.txt and
// want.yaml, want.json or error.txt.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string][]byte{}
			for _, f := range txtar.Parse(data).Files {
				sections[strings.TrimSuffix(strings.TrimSuffix(f.Name, ".json"), ".yaml")] = f.Data
			}
			document, edits := readEdits(t, string(sections["edits.txt"]))
			out, err := Apply(sections["in"], document, edits)
			if want, ok := sections["error.txt"]; ok {
				if err == nil || err.Error() != strings.TrimSpace(string(want)) {
					t.Errorf("got error %v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out, sections["want"]) {
				t.Errorf("got\n%s\nwant\n%s", out, sections["want"])
			}
			crlf, err := Apply(bytes.ReplaceAll(sections["in"], []byte("\n"), []byte("\r\n")), document, edits)
			if err != nil {
				t.Fatalf("with CRLF: %v", err)
			}
			if want := bytes.ReplaceAll(sections["want"], []byte("\n"), []byte("\r\n")); !bytes.Equal(crlf, want) {
				t.Errorf("with CRLF: got\n%q\nwant\n%q", crlf, want)
			}
		})
	}
}

// readEdits reads lines of: operation, pointer, and, in any order, from=,
// before= and a value. A first line of document=N chooses the document.
func readEdits(t *testing.T, text string) (document int, edits []Edit) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n, ok := strings.CutPrefix(line, "document="); ok {
			document, _ = strconv.Atoi(n)
			continue
		}
		op, rest, _ := strings.Cut(line, " ")
		e := Edit{}
		for o := Set; o <= Copy; o++ {
			if o.String() == op {
				e.Op = o
			}
		}
		e.Pointer, rest, _ = strings.Cut(rest, " ")
		for {
			if word, more, ok := strings.Cut(rest, " "); strings.HasPrefix(rest, "from=") {
				e.From, rest = strings.TrimPrefix(word, "from="), more
				if !ok {
					rest = ""
				}
			} else if strings.HasPrefix(rest, "before=") {
				e.Before, rest = strings.TrimPrefix(word, "before="), more
				if !ok {
					rest = ""
				}
			} else {
				break
			}
		}
		if rest != "" {
			e.Value = []byte(rest)
		}
		edits = append(edits, e)
	}
	return document, edits
}

// A page is a random document whose lines say what they belong to.
type page struct {
	*rand.Rand
	lines   []line
	step    int
	hanging bool
	places  []place
	n       int
}

type line struct {
	owner string // pointer of what the line is a part of
	text  string
}

type place struct {
	pointer string
	kids    int
	mapping bool
}

func (p *page) comment() string {
	if p.IntN(4) > 0 {
		return ""
	}
	p.n++
	return fmt.Sprintf(" # note %d", p.n)
}

func (p *page) add(owner, text string) { p.lines = append(p.lines, line{owner, text}) }

// value writes what comes after a key or a dash, whose text is begun.
func (p *page) value(pointer, begun string, column, depth int) {
	p.n++
	kind := p.IntN(9)
	if depth > 4 && kind < 4 {
		kind = 5
	}
	pad := strings.Repeat(" ", column)
	switch kind {
	case 0, 1, 2: // a mapping
		if strings.HasSuffix(begun, "-") {
			p.mapping(pointer, begun+" ", column+2, depth)
			return
		}
		p.add(pointer, begun+p.comment())
		p.mapping(pointer, "", column+p.step, depth)
	case 3: // a sequence
		if strings.HasSuffix(begun, "-") {
			p.sequence(pointer, begun+" ", column+2, depth)
			return
		}
		p.add(pointer, begun+p.comment())
		if p.hanging {
			column += p.step
		}
		p.sequence(pointer, "", column, depth)
	case 4:
		p.add(pointer, begun+" |"+[]string{"", "-", "+"}[p.IntN(3)])
		for range 1 + p.IntN(3) {
			p.n++
			p.add(pointer, fmt.Sprintf("%s  # text %d: x", pad, p.n))
		}
	case 5:
		p.add(pointer, fmt.Sprintf("%s {a: %d, \"b\": [1, 'two', {c: }], d: x}%s", begun, p.n, p.comment()))
	case 6:
		p.add(pointer, fmt.Sprintf("%s \"quoted: \\\" %d\"%s", begun, p.n, p.comment()))
	case 7:
		p.add(pointer, fmt.Sprintf("%s plain word %d%s", begun, p.n, p.comment()))
	default:
		p.add(pointer, begun+" "+[]string{"true", "12", "'it''s'", "1.5", "é"}[p.IntN(5)]+p.comment())
	}
}

func (p *page) mapping(pointer, begun string, column, depth int) {
	kids := 1 + p.IntN(4)
	p.places = append(p.places, place{pointer, kids, true})
	for i := range kids {
		pad := strings.Repeat(" ", column)
		if begun != "" {
			pad, begun = begun, ""
		} else if p.IntN(4) == 0 {
			p.n++
			p.add(pointer, fmt.Sprintf("%s# above %d", pad, p.n))
		}
		key := fmt.Sprintf("key%d", i)
		p.value(pointer+"/"+key, pad+key+":", column, depth+1)
	}
}

func (p *page) sequence(pointer, begun string, column, depth int) {
	kids := 1 + p.IntN(4)
	p.places = append(p.places, place{pointer, kids, false})
	for i := range kids {
		pad := strings.Repeat(" ", column)
		if begun != "" {
			pad, begun = begun, ""
		}
		p.value(pointer+"/"+strconv.Itoa(i), pad+"-", column, depth+1)
	}
}

var newValues = []string{`1`, `"text"`, `"yes"`, `{"a":{"b":[1,{"c":"d"}]},"e":"two\nlines"}`, `[]`, `{}`, `[{"x":1,"y":[2]}]`, `null`, `"# no comment"`, `true`}

// TestKeepsTheRest makes random edits of random documents. Apply itself checks
// the meaning; here it must succeed, and keep the lines of everything that is
// not edited.
func TestKeepsTheRest(t *testing.T) {
	runs := 3000
	if testing.Short() {
		runs = 300
	}
	for seed := range runs {
		p := &page{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), step: 2}
		p.step += 2 * p.IntN(2)
		p.hanging = p.IntN(2) == 0
		p.mapping("", "", 0, 0)
		newline := []string{"\n", "\n", "\r\n"}[p.IntN(3)]
		var text strings.Builder
		text.WriteString("# top" + newline + "other: 1 # first document" + newline + "---" + newline)
		for _, l := range p.lines {
			text.WriteString(l.text + newline)
		}
		text.WriteString("---" + newline + "last: {}" + newline)

		at := p.places[p.IntN(len(p.places))]
		e := Edit{Op: Op(p.IntN(3)), Value: []byte(newValues[p.IntN(len(newValues))])}
		i := p.IntN(at.kids)
		touched := at.pointer + "/" + strconv.Itoa(i)
		if at.mapping {
			touched = at.pointer + "/key" + strconv.Itoa(i)
		}
		e.Pointer = touched
		switch {
		case e.Op == Insert && at.mapping:
			e.Before, e.Pointer = "key"+strconv.Itoa(i), at.pointer+"/new"
			touched = e.Pointer
		case e.Op == Insert:
			touched = at.pointer + "/new"
		case e.Op == Remove && at.kids == 1:
			touched = at.pointer
		}
		if touched == "" {
			continue
		}
		out, err := Apply([]byte(text.String()), 1, []Edit{e})
		if err != nil {
			t.Fatalf("seed %d: %+v\n%s\n%v", seed, e, text.String(), err)
		}
		rest := string(out)
		for _, l := range p.lines {
			if strings.HasPrefix(l.owner+"/", touched+"/") {
				continue
			}
			want := l.text + newline
			if strings.Contains(l.text, "- ") && strings.HasPrefix(l.owner, at.pointer) || strings.HasPrefix(l.owner, at.pointer+"/key1") {
				// What is beside a dash may have to leave its place, and what is
				// below may take it.
				want = strings.TrimLeft(want, " -")
			}
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Fatalf("seed %d: %+v %s: lost the line\n%s\nof\n%s\nin\n%s", seed, e, e.Value, l.text, text.String(), out)
			}
			rest = after
		}
		if !bytes.HasPrefix(out, []byte("# top"+newline+"other: 1 # first document"+newline+"---"+newline)) || !bytes.HasSuffix(out, []byte("---"+newline+"last: {}"+newline)) {
			t.Fatalf("seed %d: another document was changed:\n%s", seed, out)
		}
	}
}

// TestManyEdits makes several random edits at once, in block and in flow style:
// all that JSON can take, the text can.
func TestManyEdits(t *testing.T) {
	runs, made := 1500, 0
	if testing.Short() {
		runs = 150
	}
	for seed := range runs {
		p := &page{Rand: rand.New(rand.NewPCG(uint64(seed), 2)), step: 2}
		p.add("", "stays: 1") // a document without members cannot be written in block style
		p.mapping("", "", 0, 0)
		var text []byte
		for _, l := range p.lines {
			text = append(append(text, l.text...), '\n')
		}
		values, err := documents(text)
		if err != nil {
			t.Fatal(err)
		}
		value := values[0]
		if seed%3 == 0 {
			if text, err = json.MarshalIndent(value, "", strings.Repeat(" ", 1+p.IntN(4))); err != nil {
				t.Fatal(err)
			}
		}
		var edits []Edit
		for range 1 + p.IntN(8) {
			e := p.edit()
			fresh, err := documents(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Patch(fresh[0], append(edits[:len(edits):len(edits)], e)); err == nil {
				edits = append(edits, e)
			}
		}
		made += len(edits)
		out, err := Apply(text, 0, edits)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\n%+v", seed, err, text, edits)
		}
		if json.Valid(text) && !json.Valid(out) {
			t.Fatalf("seed %d: no longer JSON:\n%s", seed, out)
		}
	}
	if made < runs {
		t.Errorf("only %d edits were made", made)
	}
}

// edit is a random edit, which may be impossible.
func (p *page) edit() Edit {
	at, to := p.places[p.IntN(len(p.places))], p.places[p.IntN(len(p.places))]
	child := func(x place) string {
		if x.mapping {
			return x.pointer + "/key" + strconv.Itoa(p.IntN(x.kids))
		}
		return x.pointer + "/" + strconv.Itoa(p.IntN(x.kids))
	}
	e := Edit{Op: Op(p.IntN(5)), Pointer: child(at), Value: []byte(newValues[p.IntN(len(newValues))])}
	switch {
	case e.Op == Move || e.Op == Copy:
		e.From, e.Pointer, e.Value = child(at), to.pointer+"/new"+strconv.Itoa(p.IntN(9)), nil
		if !at.mapping || !to.mapping || strings.HasPrefix(e.Pointer, e.From) {
			return Edit{Op: Set, Pointer: child(at), Value: []byte("1")}
		}
	case e.Op == Insert && at.mapping:
		e.Pointer, e.Before = at.pointer+"/new"+strconv.Itoa(p.IntN(9)), "key"+strconv.Itoa(p.IntN(4))
	}
	if e.Op == Set && e.Pointer == "" {
		e.Pointer = "/key0"
	}
	return e
}

// FuzzApply edits arbitrary texts: Apply must not panic, and what it returns it
// has verified itself. Here it is verified for JSON a second time.
func FuzzApply(f *testing.F) {
	f.Add([]byte("a:\n  b: 1 # c\n  d:\n  - x\n"), "/a/b", "/a/d/0", []byte(`{"n":[1]}`), uint8(0))
	f.Add([]byte(`{"a": {"b": [1, 2]}, "c": "d"}`), "/a/b/1", "/c", []byte(`"v"`), uint8(2))
	f.Add([]byte("{a: &x 1, b: *x, <<: {c: 1}}"), "/a", "/b", []byte(`true`), uint8(1))
	f.Add([]byte("? k\n: v\n'q': |+\n  t\n\n\"r\": >\n  u\n"), "/q", "/r", []byte(`null`), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, first, second string, value []byte, op uint8) {
		if len(text) > 1<<20 {
			return
		}
		edits := []Edit{
			{Op: Op(op % 5), Pointer: first, From: second, Value: value},
			{Op: Op(op / 5 % 5), Pointer: second, From: first, Value: value},
		}
		out, err := Apply(text, 0, edits)
		if err != nil || !json.Valid(text) {
			return
		}
		if !json.Valid(out) {
			t.Errorf("%s\nis no longer JSON:\n%s", text, out)
		}
	})
}
