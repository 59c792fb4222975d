package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Document is one object of a file.
type Document struct {
	File  *File
	Index int    // of the YAML or JSON document in the file, from 0
	JSON  []byte // what kubectl would send
	// List is the JSON pointer of the object in its document, /items/3 say, if
	// it came in a list.
	List string
	// What the object says it is, as far as it does. Split fills them in.
	APIVersion, Kind, Namespace, Name string

	origin *origin
	base   int // offset of JSON in the document's
}

// origin says where the JSON of a document comes from.
type origin struct {
	json  []byte
	marks []mark // sorted by offset; nil for a JSON file
	at    int    // of a JSON file: the document's offset in the text
}

// Error is a file that could not be read, or a place in one.
type Error struct {
	File     *File // nil if there is none
	Name     string
	Position Position
	Msg      string
}

// Error says which file, where, and what is wrong.
func (e *Error) Error() string {
	if e.Position.Line > 0 {
		return e.Name + ":" + strconv.Itoa(e.Position.Line) + ": " + e.Msg
	}
	return e.Name + ": " + e.Msg
}

// Parse reads the documents of a file. Empty ones are left out. Together with an
// error come the documents that can be read: errors of several documents are joined,
// and [Errors] parts them.
func Parse(f *File) ([]*Document, error) {
	if looksLikeJSON(f.Text) {
		if docs, err := parseJSON(f); err == nil {
			return docs, nil
		} else if json.Valid(f.Text) {
			return nil, err
		}
		// JSON with comments or trailing commas is YAML often enough.
	}
	return parseYAML(f)
}

// Objects reads the objects of a file: those of its documents, and the items of
// lists among them. Together with an error come the objects that can be read, as of [Parse].
func Objects(f *File) ([]*Document, error) {
	docs, err := Parse(f)
	var all []*Document
	for _, d := range docs {
		all = append(all, d.Split()...)
	}
	return all, err
}

func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeftFunc(text, unicode.IsSpace)
	return len(text) > 0 && text[0] == '{'
}

func parseJSON(f *File) ([]*Document, error) {
	var docs []*Document
	for decoder, i := json.NewDecoder(bytes.NewReader(f.Text)), 0; ; i++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		end := int(decoder.InputOffset())
		o := &origin{at: end - len(raw)}
		o.json = f.Text[o.at:end:end]
		docs = append(docs, &Document{File: f, Index: i, JSON: o.json, origin: o})
	}
}

func parseYAML(f *File) ([]*Document, error) {
	r := yamlReader{file: f}
	read := r.chunks
	if unusual(f.Text) {
		read = r.stream
	}
	err := read()
	return r.docs, err
}

// unusual reports whether there are directives or explicit ends of documents,
// which take a reader of streams. Whatever else begins with --- begins a document.
func unusual(text []byte) bool {
	return bytes.HasPrefix(text, []byte("%")) || bytes.Contains(text, []byte("\n%")) ||
		bytes.HasPrefix(text, []byte("...")) || bytes.Contains(text, []byte("\n..."))
}

// nextDocument returns where the next line is that begins a document, after the
// first line; the length of the text if there is none.
func nextDocument(text []byte) int {
	for at := 0; ; {
		n := bytes.Index(text[at:], []byte("\n---"))
		if n < 0 {
			return len(text)
		}
		at += n + len("\n---")
		if at == len(text) || bytes.IndexByte([]byte(" \t\r\n"), text[at]) >= 0 {
			return at - len("---")
		}
	}
}

// yamlReader collects the documents of a YAML file.
type yamlReader struct {
	file    *File
	docs    []*Document
	scalars scalars
	index   int
}

// maxErrors bounds the errors of one file.
const maxErrors = 100

// chunks reads the documents one by one, which is faster than as a stream. A document
// that cannot be read hides no other.
func (r *yamlReader) chunks() error {
	rest, line := r.file.Text, 0
	var errs []error
	for len(rest) > 0 && len(errs) < maxErrors {
		end := nextDocument(rest)
		var node yaml.Node
		if err := yaml.Unmarshal(rest[:end], &node); err != nil {
			errs = append(errs, r.file.yamlError(err, rest[:end], line))
			r.index++
		} else if err := r.document(&node, end, line); err != nil {
			errs = append(errs, err)
			r.index++
		}
		line += bytes.Count(rest[:end], []byte{'\n'})
		rest = rest[end:]
	}
	return errors.Join(errs...)
}

// Errors returns the errors of [Parse] and [Objects] one by one, in order.
func Errors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func (r *yamlReader) stream() error {
	decoder := yaml.NewDecoder(bytes.NewReader(r.file.Text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.file.yamlError(err, r.file.Text, 0)
		}
		if err := r.document(&node, len(r.file.Text), 0); err != nil {
			return err
		}
	}
}

// document converts a document whose text has size bytes and follows line lines.
func (r *yamlReader) document(node *yaml.Node, size, line int) error {
	if len(node.Content) == 0 {
		return nil
	}
	c := converter{scalars: &r.scalars, line: line, limit: size*8 + maxExpansion}
	c.out = make([]byte, 0, size*3/4) // what the JSON of indented YAML takes
	c.marks = make([]mark, 0, size/20)
	c.value(node.Content[0])
	if c.err != nil {
		var p *problem
		errors.As(c.err, &p)
		return &Error{File: r.file, Name: r.file.Name, Position: r.file.token(p.line+line, p.column), Msg: p.text}
	}
	if string(c.out) != "null" {
		o := &origin{json: c.out, marks: c.marks}
		r.docs = append(r.docs, &Document{File: r.file, Index: r.index, JSON: o.json, origin: o})
	}
	r.index++
	return nil
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	yamlParser = regexp.MustCompile(`^did not find expected (?:node content|key|'-' indicator|',' or|<document start>)`)
	yamlAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

// yamlError finds the line in the message of the YAML library's error about a text;
// before is the number of lines before that text.
func (f *File) yamlError(err error, text []byte, before int) error {
	e := &Error{File: f, Name: f.Name, Msg: err.Error()}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		e.Msg = m[2]
		line, convErr := strconv.Atoi(m[1]) // the library leaves out the number of the first line
		if anchor := yamlAnchor.FindStringSubmatch(e.Msg); anchor != nil {
			line, _ = f.place(max(bytes.Index(f.Text, []byte("*"+anchor[1])), 0))
			before = 0
		} else if at := unreadable(text); convErr != nil && at < len(text) {
			line, column := f.place(f.offset(before+1, 1) + at)
			e.Position = Position{line, column, column + 1}
			return e
		} else if convErr != nil {
			line = 1
		} else if yamlParser.MatchString(e.Msg) {
			line++ // the library counts from 0 here
		}
		line = min(max(line+before, 1), f.Lines())
		shown := f.Line(line)
		e.Position = f.token(line, utf8.RuneCountInString(shown)-utf8.RuneCountInString(strings.TrimLeft(shown, " \t"))+1)
	}
	return e
}

// unreadable returns the offset of the first byte that is no character of YAML; the length
// of the text if there is none.
func unreadable(text []byte) int {
	for at := 0; at < len(text); {
		c, n := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && n <= 1 || c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x7f && c < 0xa0 && c != 0x85 {
			return at
		}
		at += n
	}
	return len(text)
}

// Split returns the objects of a document: its items if it is a list, v1 List
// or any other kind of that name's form, otherwise itself.
func (d *Document) Split() []*Document {
	doc, err := jsondoc.Parse(d.JSON, jsondoc.Limits{})
	if err != nil {
		return []*Document{d}
	}
	defer doc.Release()
	d.identify(doc, jsondoc.Root)
	items, ok := member(doc, jsondoc.Root, "items")
	if !ok || doc.Kind(items) != jsondoc.Array || !strings.HasSuffix(d.Kind, "List") {
		return []*Document{d}
	}
	objects := make([]*Document, 0, doc.Len(items))
	for i, item := range doc.Items(items) {
		sub := *d
		sub.JSON = doc.Raw(item)
		sub.JSON = sub.JSON[:len(sub.JSON):len(sub.JSON)]
		sub.base = d.base + doc.Offset(item)
		sub.List = d.List + "/items/" + strconv.Itoa(i)
		sub.identify(doc, item)
		objects = append(objects, &sub)
	}
	return objects
}

// identify reads what the object v of doc says it is.
func (d *Document) identify(doc *jsondoc.Doc, v jsondoc.Value) {
	text := func(v jsondoc.Value, name string) string {
		if m, ok := member(doc, v, name); ok && doc.Kind(m) == jsondoc.String {
			return doc.Text(m)
		}
		return ""
	}
	d.APIVersion, d.Kind = text(v, "apiVersion"), text(v, "kind")
	d.Namespace, d.Name = "", ""
	if metadata, ok := member(doc, v, "metadata"); ok {
		d.Namespace, d.Name = text(metadata, "namespace"), text(metadata, "name")
	}
}

// At returns the place of the key or value that begins at an offset in JSON. An
// offset inside a string is that of a character of the string, as far as
// the text of the file shows it.
func (d *Document) At(offset int) Position {
	offset = min(max(offset, 0), len(d.JSON)) + d.base
	o := d.origin
	if o.marks == nil {
		line, column := d.File.place(o.at + offset)
		return d.File.token(line, column)
	}
	i := sort.Search(len(o.marks), func(i int) bool { return int(o.marks[i].offset) > offset }) - 1
	if i < 0 {
		return Position{}
	}
	m := o.marks[i]
	// YAML also breaks lines at characters that no editor counts.
	line, column := min(int(m.line), len(d.File.starts())), int(m.column)
	if inside := offset - int(m.offset); inside > 1 && o.json[m.offset] == '"' {
		if at, ok := d.File.align(line, column, o.json[m.offset:offset]); ok {
			line, column = d.File.place(at)
			return Position{line, column, column + 1}
		}
	}
	return d.File.token(line, column)
}

// Of returns the place to show for the value at an offset: that of its key if it
// is an object or an array and has one, since the line of the key says which it
// is, otherwise its own.
func (d *Document) Of(offset int) Position {
	if offset < 0 || offset >= len(d.JSON) || d.JSON[offset] != '{' && d.JSON[offset] != '[' {
		return d.At(offset)
	}
	key := bytes.TrimRight(d.JSON[:offset], " \t\r\n")
	if len(key) == 0 || key[len(key)-1] != ':' {
		return d.At(offset)
	}
	key = bytes.TrimRight(key[:len(key)-1], " \t\r\n")
	for begin := len(key) - 2; begin >= 0; begin-- {
		if key[begin] != '"' {
			continue
		}
		escapes := len(key[:begin]) - len(bytes.TrimRight(key[:begin], `\`))
		if escapes%2 == 0 {
			return d.At(begin)
		}
	}
	return d.At(offset)
}

// align follows the beginning of a JSON string through the text of the scalar
// at a line and column, and returns the offset where it ends. Any white space
// matches any other: block scalars are indented and folded.
func (f *File) align(line, column int, begin []byte) (int, bool) {
	var value string
	if json.Unmarshal(append(bytes.Clone(begin), '"'), &value) != nil {
		return 0, false
	}
	at := f.offset(line, column)
	if at >= len(f.Text) {
		return 0, false
	}
	switch f.Text[at] {
	case '|', '>':
		n := bytes.IndexByte(f.Text[at:], '\n')
		if n < 0 {
			return 0, false
		}
		at += n
	case '"', '\'':
		at++
	}
	blank := func() {
		for at < len(f.Text) && (f.Text[at] == ' ' || f.Text[at] == '\n' || f.Text[at] == '\r' || f.Text[at] == '\t') {
			at++
		}
	}
	if len(value) == 0 {
		blank()
	}
	space := true
	for _, r := range value {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space {
			blank()
			space = false
		}
		got, n := utf8.DecodeRune(f.Text[at:])
		if got != r {
			return 0, false
		}
		at += n
	}
	if space {
		blank()
	}
	return at, true
}

// Locate returns the place of the value that a JSON pointer into the object
// leads to, and whether it is there. If it is not, the place is that of the key
// of the nearest parent that is.
func (d *Document) Locate(pointer string) (Position, bool) {
	value, key, found := d.find(pointer)
	if !found && key >= 0 {
		return d.At(key), false
	}
	return d.At(value), found
}

// LocateKey returns the place of the key of the member that a JSON pointer leads
// to; of the value, if it is no member.
func (d *Document) LocateKey(pointer string) (Position, bool) {
	value, key, found := d.find(pointer)
	if key >= 0 {
		return d.At(key), found
	}
	return d.At(value), found
}

// find follows a JSON pointer as far as it leads. key is -1 where the value
// has none.
func (d *Document) find(pointer string) (value, key int, found bool) {
	doc, err := jsondoc.Parse(d.JSON, jsondoc.Limits{})
	if err != nil {
		return 0, -1, false
	}
	defer doc.Release()
	v := jsondoc.Root
	key = -1
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = unescape.Replace(token)
		var next jsondoc.Value
		ok, keyed := false, -1
		switch doc.Kind(v) {
		case jsondoc.Object:
			for m := range doc.Members(v) {
				if string(doc.AppendText(nil, m.Key)) == token {
					next, keyed, ok = m.Value, doc.Offset(m.Key), true
				}
			}
		case jsondoc.Array:
			if i, err := strconv.Atoi(token); err == nil {
				next, ok = doc.Index(v, i)
			}
		}
		if !ok {
			return doc.Offset(v), key, false
		}
		v, key = next, keyed
	}
	return doc.Offset(v), key, true
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func member(doc *jsondoc.Doc, v jsondoc.Value, name string) (jsondoc.Value, bool) {
	if doc.Kind(v) != jsondoc.Object {
		return 0, false
	}
	return doc.Get(v, name)
}
