package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/crd/manifest"
)

// Op is what an edit does.
type Op uint8

// The operations.
const (
	Set    Op = iota // replaces the value at Pointer by Value
	Insert           // adds Value as the member or item at Pointer
	Remove           // takes out the member or item at Pointer
	Move             // takes the member at From to Pointer, with its comments
	Copy             // repeats the member at From at Pointer, with its comments
)

// String names the operation.
func (o Op) String() string {
	return [...]string{"set", "insert", "remove", "move", "copy"}[o]
}

// Edit is one change of a document. Edits are made one after the other, each
// to what those before it have left.
type Edit struct {
	Op      Op
	Pointer string // RFC 6901, in the document
	From    string // of Move and Copy
	Value   []byte // JSON, of Set and Insert
	// Before is the member before the new one. If it does not exist, the new
	// one becomes the last.
	Before string
}

// Apply makes the edits in one of the YAML documents that text consists of.
func Apply(text []byte, document int, edits []Edit) ([]byte, error) {
	return ApplyAll(text, map[int][]Edit{document: edits})
}

// maxRead bounds how much is read if edits depend on each other, so that the
// text has to be read again for each.
const maxRead = 128 << 20

// ApplyAll makes the edits of each of the YAML documents that text consists of.
func ApplyAll(text []byte, edits map[int][]Edit) ([]byte, error) {
	return apply(text, edits, maxRead)
}

func apply(text []byte, edits map[int][]Edit, limit int) ([]byte, error) {
	rest := maps.Clone(edits)
	maps.DeleteFunc(rest, func(_ int, e []Edit) bool { return len(e) == 0 })
	if len(rest) == 0 {
		return text, nil
	}
	out := text
	for read := 0; len(rest) > 0; {
		if read += len(out); read > limit && read > len(text) {
			return nil, errors.New("the text cannot be edited: it is too large for this many changes that depend on each other")
		}
		var err error
		if out, err = pass(out, rest); err != nil {
			return nil, err
		}
	}
	if err := verify(text, out, edits); err != nil {
		return nil, err
	}
	return out, nil
}

// pass makes as many of the first edits of each document as it can at once, and
// takes them out of edits.
func pass(text []byte, edits map[int][]Edit) ([]byte, error) {
	docs, err := parse(text, edits)
	if err != nil {
		return nil, err
	}
	var out []byte
	at := 0
	for _, i := range slices.Sorted(maps.Keys(docs)) {
		c, n, err := prepare(docs[i], edits[i])
		if err != nil {
			return nil, err
		}
		if len(c.changes) > 0 && c.changes[0].start < at {
			continue // it is up to another pass
		}
		for _, x := range c.changes {
			out = append(append(out, text[at:x.start]...), x.with...)
			at = x.end
		}
		if edits[i] = edits[i][n:]; len(edits[i]) == 0 {
			delete(edits, i)
		}
	}
	return append(out, text[at:]...), nil
}

// prepare finds the changes that make the first n edits, as many as possible.
func prepare(d *document, edits []Edit) (c *changer, n int, err error) {
	for n = independent(d.root, edits); ; {
		c = &changer{doc: d}
		failed := -1
		for i, e := range edits[:n] {
			if err = c.edit(e); err != nil {
				failed = i
				break
			}
		}
		switch {
		case failed > 0: // perhaps it needs those before it
			n = failed
			continue
		case failed == 0:
			return nil, 0, fmt.Errorf("%s %s: %w", edits[0].Op, edits[0].Pointer, err)
		}
		if err = c.restructure(); err != nil {
			return nil, 0, err
		}
		if c.sort() {
			return c, n, nil
		}
		if n == 1 {
			return nil, 0, errOverlap
		}
		n /= 2
	}
}

// parents yields the pointers above one, from the root down, each with the
// token that leads on from there.
func parents(pointer string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i := 0; i < len(pointer); {
			end := strings.IndexByte(pointer[i+1:], '/')
			if end < 0 {
				end = len(pointer)
			} else {
				end += i + 1
			}
			if !yield(pointer[:i], unescape(pointer[i+1:end])) {
				return
			}
			i = end
		}
	}
}

// cut splits a pointer into the one above it and the last token.
func cut(pointer string) (parent, token string) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", ""
	}
	return pointer[:i], unescape(pointer[i+1:])
}

func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// verify compares the documents of the new text with those of the old one and
// what the edits do to them.
func verify(before, after []byte, edits map[int][]Edit) error {
	old, err := documents(before)
	if err != nil {
		return err
	}
	now, err := documents(after)
	if err != nil {
		return fmt.Errorf("the text cannot be edited: the result would not be YAML: %w", err)
	}
	for _, i := range slices.Sorted(maps.Keys(edits)) {
		target, ok := old[i]
		if !ok {
			return fmt.Errorf("the file has no document %d", i)
		}
		if old[i], err = Patch(target, edits[i]); err != nil {
			return err
		}
	}
	for i := range old {
		old[i] = plainNumbers(old[i])
	}
	for i := range now {
		now[i] = plainNumbers(now[i])
	}
	if !reflect.DeepEqual(old, now) {
		return errors.New("the text cannot be edited: the result would mean something else; write this part of the document in plain block style first")
	}
	return nil
}

// plainNumbers writes the numbers of a value, which it changes, in one form:
// 1e3 and 1000.0 become 1000, because YAML does not keep how they are written.
func plainNumbers(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for name, child := range x {
			x[name] = plainNumbers(child)
		}
	case []any:
		for i, child := range x {
			x[i] = plainNumbers(child)
		}
	case json.Number:
		if f, err := x.Float64(); err == nil && strings.ContainsAny(string(x), ".eE") {
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	return v
}

// documents returns the values of all documents, by index.
func documents(text []byte) (map[int]any, error) {
	docs, err := manifest.Parse(&manifest.File{Text: text})
	if err != nil {
		return nil, err
	}
	values := make(map[int]any, len(docs))
	for _, d := range docs {
		v, err := decode(d.JSON)
		if err != nil {
			return nil, err
		}
		values[d.Index] = v
	}
	return values, nil
}

func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	err := decoder.Decode(&v)
	return v, err
}

// Patch makes the edits in a decoded document, which it may reuse.
func Patch(document any, edits []Edit) (any, error) {
	for _, e := range edits {
		value, err := operand(document, e)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", e.Op, e.Pointer, err)
		}
		if e.Op == Move {
			if document, err = change(document, e.From, Remove, nil); err != nil {
				return nil, fmt.Errorf("%s %s: %w", e.Op, e.Pointer, err)
			}
		}
		op := e.Op
		if op == Move || op == Copy {
			op = Insert
		}
		if document, err = change(document, e.Pointer, op, value); err != nil {
			return nil, fmt.Errorf("%s %s: %w", e.Op, e.Pointer, err)
		}
	}
	return document, nil
}

// operand returns the value that an edit brings.
func operand(document any, e Edit) (any, error) {
	switch e.Op {
	case Remove:
		return nil, nil
	case Set, Insert:
		return decode(e.Value)
	}
	for _, token := range parents(e.From) {
		switch x := document.(type) {
		case map[string]any:
			child, ok := x[token]
			if !ok {
				return nil, errNotThere
			}
			document = child
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) {
				return nil, errNotThere
			}
			document = x[i]
		default:
			return nil, errNotThere
		}
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

var (
	errNotThere = errors.New("the place does not exist")
	errThere    = errors.New("the place already exists")
	errRoot     = errors.New("a whole document cannot be edited")
	errOverlap  = errors.New("the text cannot be edited: two changes overlap")
)

// change makes one change below a value and returns what becomes of the value.
func change(in any, pointer string, op Op, value any) (any, error) {
	if pointer == "" {
		return nil, errRoot
	}
	end := strings.IndexByte(pointer[1:], '/') + 1
	last := end == 0
	if last {
		end = len(pointer)
	}
	token := unescape(pointer[1:end])
	switch x := in.(type) {
	case map[string]any:
		child, ok := x[token]
		if ok == (last && op == Insert) {
			if ok {
				return nil, errThere
			}
			return nil, errNotThere
		}
		if last && op == Remove {
			delete(x, token)
			return x, nil
		}
		if !last {
			var err error
			if value, err = change(child, pointer[end:], op, value); err != nil {
				return nil, err
			}
		}
		x[token] = value
		return x, nil
	case []any:
		i, err := strconv.Atoi(token)
		if token == "-" && last && op == Insert {
			i, err = len(x), nil
		}
		if err != nil || i < 0 || i > len(x) || i == len(x) && (!last || op != Insert) {
			return nil, errNotThere
		}
		switch {
		case !last:
			x[i], err = change(x[i], pointer[end:], op, value)
			return x, err
		case op == Insert:
			return slices.Insert(x, i, value), nil
		case op == Remove:
			return slices.Delete(x, i, i+1), nil
		}
		x[i] = value
		return x, nil
	}
	return nil, errNotThere
}
