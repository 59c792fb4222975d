package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// spot is where something of a canonical object is in the document that the
// object was made of.
type spot struct {
	pointer string // in the canonical object
	value   jsondoc.Value
	key     bool // it is a key, not a value
	there   bool // if not, value is the nearest one around it that is
}

// locator finds spots.
type locator struct {
	document *manifest.Document
	source   *jsondoc.Doc
	object   *jsondoc.Doc
	wanted   []int // offsets in object, sorted
	spots    map[int]spot
	path     []byte
}

// locate finds what is at some offsets of a canonical object, in one walk down
// to them. The caller has to release the source of the locator.
func locate(d *manifest.Document, object []byte, offsets []int) (*locator, error) {
	source, err := jsondoc.Parse(d.JSON, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	doc, err := jsondoc.Parse(object, jsondoc.Limits{})
	if err != nil {
		source.Release()
		return nil, err
	}
	defer doc.Release()
	l := &locator{document: d, source: source, object: doc, wanted: slices.Clone(offsets), spots: make(map[int]spot)}
	slices.Sort(l.wanted)
	l.value(jsondoc.Root, jsondoc.Root, true)
	return l, nil
}

// wants reports whether something between two offsets is looked for.
func (l *locator) wants(from, to int) bool {
	i, _ := slices.BinarySearch(l.wanted, from)
	return i < len(l.wanted) && l.wanted[i] < to
}

func (l *locator) note(offset int, s spot) {
	if _, ok := slices.BinarySearch(l.wanted, offset); ok {
		s.pointer = string(l.path)
		l.spots[offset] = s
	}
}

// value walks v; source is its counterpart, or what is around that.
func (l *locator) value(v, source jsondoc.Value, there bool) {
	l.note(l.object.Offset(v), spot{value: source, there: there})
	switch l.object.Kind(v) {
	case jsondoc.Object:
		var known map[string]jsondoc.Value
		for m := range l.object.Members(v) {
			if !l.wants(l.object.Offset(m.Key), l.object.End(m.Value)) {
				continue
			}
			if known == nil {
				known = l.members(source, there)
			}
			name := string(l.object.Key(m.Key))
			key, ok := known[name]
			length := len(l.path)
			l.path = appendToken(l.path, name)
			if ok {
				l.note(l.object.Offset(m.Key), spot{value: key, key: true, there: true})
				l.value(m.Value, key+1, true)
			} else {
				l.note(l.object.Offset(m.Key), spot{value: source})
				l.value(m.Value, source, false)
			}
			l.path = l.path[:length]
		}
	case jsondoc.Array:
		l.items(v, source, there)
	}
}

func (l *locator) items(v, source jsondoc.Value, there bool) {
	there = there && l.source.Kind(source) == jsondoc.Array
	at, end := source+1, l.source.Next(source)
	for i, item := range l.object.Items(v) {
		if l.wants(l.object.Offset(item), l.object.End(item)) {
			length := len(l.path)
			l.path = appendToken(l.path, strconv.Itoa(i))
			if there && at < end {
				l.value(item, at, true)
			} else {
				l.value(item, source, false)
			}
			l.path = l.path[:length]
		}
		if there && at < end {
			at = l.source.Next(at)
		}
	}
}

// members returns the keys of an object of the source, the last of equal ones.
func (l *locator) members(source jsondoc.Value, there bool) map[string]jsondoc.Value {
	if !there || l.source.Kind(source) != jsondoc.Object {
		return map[string]jsondoc.Value{}
	}
	known := make(map[string]jsondoc.Value)
	for m := range l.source.Members(source) {
		known[string(l.source.Key(m.Key))] = m.Key
	}
	return known
}

func appendToken(path []byte, token string) []byte {
	path = append(path, '/')
	if strings.ContainsAny(token, "~/") {
		token = strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
	}
	return append(path, token...)
}

// position is where a spot is in the file.
func (l *locator) position(s spot) manifest.Position {
	offset := l.source.Offset(s.value)
	if s.key {
		return l.document.At(offset)
	}
	return l.document.Of(offset)
}

// spot is where the value is that a field path leads to, or the nearest key around it. It reports false if
// too many were asked for.
func (v *result) spot(path string) (manifest.Position, bool) {
	if v.lookups >= maxLookups {
		return manifest.Position{}, false
	}
	v.lookups++
	at := v.lookup(path) // parses the source
	if v.source == nil {
		return v.document.At(at), true
	}
	s := below(v.source, jsondoc.Root, path)
	if s.there && s.key {
		return v.document.Of(v.source.Offset(s.value + 1)), true
	}
	if s.there {
		return v.document.Of(v.source.Offset(s.value)), true
	}
	return v.document.At(at), true
}

// below follows the end of a field path, such as .spec[key].list[2], from a
// value of the source as far as it leads. It returns the key of the last
// member, or the value that is no member.
func below(doc *jsondoc.Doc, v jsondoc.Value, path string) spot {
	s := spot{value: v, there: true}
	for path != "" {
		var token string
		token, path = cutPath(path)
		if s.key {
			v++
		}
		next, found := v, false
		switch doc.Kind(v) {
		case jsondoc.Object:
			for m := range doc.Members(v) {
				if string(doc.Key(m.Key)) == token {
					next, found = m.Key, true
				}
			}
			s.key = found || s.key
		case jsondoc.Array:
			if i, err := strconv.Atoi(token); err == nil {
				if next, found = doc.Index(v, i); found {
					s.key = false
				}
			}
		}
		if !found {
			s.there = false
			return s
		}
		s.value, v = next, next
	}
	return s
}

// cutPath cuts the first step off a field path.
func cutPath(path string) (token, rest string) {
	if strings.HasPrefix(path, "[") {
		if end := strings.IndexByte(path, ']'); end > 0 {
			return strings.Trim(path[1:end], `'"`), path[end+1:]
		}
	}
	path = strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(path, ".["); end > 0 {
		return path[:end], path[end:]
	}
	return path, ""
}
