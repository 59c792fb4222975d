package object

import (
	"bytes"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

var emptyObject = []byte("{}")

// Keys as they are written. None needs an escape, so their lengths are those
// of the keys in raw.
const (
	keyVersion         = `"apiVersion":`
	keyKind            = `"kind":`
	keyMetadata        = `"metadata":`
	keyResourceVersion = `"resourceVersion":`
)

// splicer copies canonical JSON and changes members on the way. Changes are
// made in the order of their places.
type splicer struct {
	dst, raw []byte
	pos      int // all of raw before it is done
}

// to copies what is before p.
func (s *splicer) to(p int) {
	s.dst = append(s.dst, s.raw[s.pos:p]...)
	s.pos = p
}

// begin writes everything before the value of the member at a place.
func (s *splicer) begin(place int32, key string) {
	if place > 0 {
		s.to(int(place))
		return
	}
	s.to(int(^place))
	if last := s.dst[len(s.dst)-1]; last != '{' && last != ',' {
		s.dst = append(s.dst, ',')
	}
	s.dst = append(s.dst, key...)
}

// finish leaves out the value that the member had, which ends before end.
func (s *splicer) finish(place int32, end int) {
	if place > 0 {
		s.pos = end
	} else if s.raw[s.pos] != '}' {
		s.dst = append(s.dst, ',')
	}
}

// remove leaves out the member at a place, which ends before end.
func (s *splicer) remove(place int32, key string, end int) {
	s.to(int(place) - len(key))
	s.pos = end
	if s.raw[end] == ',' {
		s.pos++
	} else if last := len(s.dst) - 1; s.dst[last] == ',' {
		s.dst = s.dst[:last]
	}
}

// set gives the member at a place the value, or removes it for the empty string.
func (s *splicer) set(place int32, key, value string) {
	end := 0
	if place > 0 {
		end = valueEnd(s.raw, int(place))
	}
	switch {
	case value != "":
		s.begin(place, key)
		s.dst = jsondoc.AppendString(s.dst, value)
		s.finish(place, end)
	case place > 0:
		s.remove(place, key, end)
	}
}

// base returns the bytes that changes are applied to.
func (o *Object) base() []byte {
	if o.raw == nil {
		return emptyObject
	}
	return o.raw
}

// changed reports whether the object is more than its base.
func (o *Object) changed() bool { return o.versioned || o.types != nil || o.meta != nil }

// AppendJSON appends the object as canonical JSON.
func (o *Object) AppendJSON(dst []byte) []byte {
	if !o.changed() {
		return append(dst, o.base()...)
	}
	s := splicer{dst: dst, raw: o.base()}
	at := o.at
	if o.raw == nil {
		at[atVersion], at[atKind], at[atMetadata] = ^1, ^1, ^1
	}
	if o.types != nil {
		s.set(at[atVersion], keyVersion, o.types.APIVersion)
		s.set(at[atKind], keyKind, o.types.Kind)
	}
	switch place := at[atMetadata]; {
	case o.meta != nil:
		s.begin(place, keyMetadata)
		s.dst = appendMeta(s.dst, o.meta, o.GetResourceVersion())
		s.finish(place, int(o.metaEnd))
	case !o.versioned:
	case at[atResourceVersion] != 0:
		s.set(at[atResourceVersion], keyResourceVersion, o.resourceVersion)
	default: // there is no metadata, or it is null
		s.begin(place, keyMetadata)
		s.dst = append(s.dst, '{')
		s.dst = append(s.dst, keyResourceVersion...)
		s.dst = append(jsondoc.AppendString(s.dst, o.resourceVersion), '}')
		s.finish(place, int(o.metaEnd))
	}
	s.to(len(s.raw))
	return s.dst
}

// sizeHint estimates the length of the changed object from above, in most cases.
func (o *Object) sizeHint() int {
	n := len(o.raw) + len(keyResourceVersion) + len(o.resourceVersion) + 16
	if o.types != nil {
		n += len(keyVersion) + len(o.types.APIVersion) + len(keyKind) + len(o.types.Kind)
	}
	if o.meta != nil {
		n += 512
		for i := range o.meta.ManagedFields {
			n += 256 + len(o.meta.ManagedFields[i].FieldsV1.GetRawBytes())
		}
	}
	return n
}

// Member returns the JSON of a top-level field, such as spec, or nil. It is
// not for apiVersion, kind and metadata.
func (o *Object) Member(name string) []byte {
	if slices.Contains(topNames, name) {
		return nil
	}
	return o.member(name)
}

// member returns the JSON of a top-level field as it is in the base.
func (o *Object) member(name string) []byte {
	c := within(o.base(), 0)
	if at := int(o.at[atMetadata]); at > 0 && name > "metadata" {
		// What is asked for most comes after the metadata.
		c.next, c.begun = int(o.metaEnd), true
	}
	return find(c, escaped(name))
}

// SetMember sets a top-level field to canonical JSON, or removes it if value
// is nil. It is not for apiVersion, kind and metadata, and does nothing to
// them. Stamp and Source are forgotten.
func (o *Object) SetMember(name string, value []byte) {
	if slices.Contains(topNames, name) {
		return
	}
	base := o.base()
	var place [1]int32
	written := escaped(name)
	if _, err := locate(base, 0, []string{written}, place[:]); err != nil {
		return // cannot be: scan has been over it
	}
	key := `"` + written + `":`
	s := splicer{dst: make([]byte, 0, len(base)+len(key)+len(value)+1), raw: base}
	end := 0
	if place[0] > 0 {
		end = valueEnd(base, int(place[0]))
	}
	switch {
	case value != nil:
		s.begin(place[0], key)
		s.dst = append(s.dst, value...)
		s.finish(place[0], end)
	case place[0] > 0:
		s.remove(place[0], key, end)
	default:
		return
	}
	s.to(len(base))
	changed := *o
	changed.raw, changed.stamp, changed.extra = s.dst, nil, o.edited(s.dst, name, value == nil)
	if err := changed.scan(); err != nil {
		panic("object: the value given to SetMember is not canonical JSON")
	}
	*o = changed
}

// ReplaceMember is SetMember for a value that is in the form of the object's stamp, which the object keeps. It does
// nothing if there is no member to remove.
func (o *Object) ReplaceMember(name string, value []byte) {
	if value == nil && o.Member(name) == nil {
		return
	}
	stamp := o.stamp
	o.SetMember(name, value)
	o.stamp = stamp
}

// Lookup returns the JSON of the value at a path of member names, or nil.
func (o *Object) Lookup(path ...string) []byte {
	if len(path) == 0 {
		return o.JSON()
	}
	var value []byte
	if o.changed() && slices.Contains(topNames, path[0]) {
		value = find(within(o.JSON(), 0), path[0])
	} else {
		value = o.member(path[0])
	}
	for _, name := range path[1:] {
		if len(value) == 0 || value[0] != '{' {
			return nil
		}
		value = find(within(value, 0), escaped(name))
	}
	return value
}

// SameBody reports whether all that is outside apiVersion, kind and
// metadata, and of the members named in except, is equal.
func (o *Object) SameBody(other *Object, except ...string) bool {
	skip := func(c *cursor) bool {
		name := textOf(c.b[c.key:c.keyEnd])
		return slices.Contains(topNames, name) || slices.Contains(except, name)
	}
	next := func(c *cursor) bool {
		for c.advance() {
			if !skip(c) {
				return true
			}
		}
		return false
	}
	a, b := within(o.base(), 0), within(other.base(), 0)
	for {
		more := next(&a)
		if more != next(&b) {
			return false
		}
		if !more {
			return true
		}
		if !bytes.Equal(a.b[a.key:a.next], b.b[b.key:b.next]) {
			return false
		}
	}
}
