package exec

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// metaType is how a field of ObjectMeta, or of the structures in it, reads and
// writes JSON.
type metaType uint8

const (
	optionalString metaType = iota // omitted when empty
	requiredString                 // written always
	optionalInt                    // omitted when zero
	pointerInt
	pointerBool
	timestamp
	stringList
	stringMap
	ownerReferences
	managedFields
	anyObject // fieldsV1
)

// structure is the fields of a Go type of apimachinery.
type structure struct {
	names    *plan.Props
	types    []metaType // by rank
	required int        // how many are requiredString
}

func newStructure(fields map[string]metaType) *structure {
	s := &structure{}
	var list []plan.Prop
	for name := range fields {
		list = append(list, plan.Prop{Name: name})
	}
	s.names = plan.NewProps(list)
	for i := range s.names.Len() {
		t := fields[s.names.At(i).Name]
		s.types = append(s.types, t)
		if t == requiredString {
			s.required++
		}
	}
	return s
}

var (
	objectMetaStructure = newStructure(map[string]metaType{
		"name": optionalString, "generateName": optionalString, "namespace": optionalString,
		"selfLink": optionalString, "uid": optionalString, "resourceVersion": optionalString,
		"generation": optionalInt, "creationTimestamp": timestamp, "deletionTimestamp": timestamp,
		"deletionGracePeriodSeconds": pointerInt, "labels": stringMap, "annotations": stringMap,
		"ownerReferences": ownerReferences, "finalizers": stringList, "managedFields": managedFields,
	})
	ownerReferenceStructure = newStructure(map[string]metaType{
		"apiVersion": requiredString, "kind": requiredString, "name": requiredString, "uid": requiredString,
		"controller": pointerBool, "blockOwnerDeletion": pointerBool,
	})
	managedFieldsStructure = newStructure(map[string]metaType{
		"manager": optionalString, "operation": optionalString, "apiVersion": optionalString, "time": timestamp,
		"fieldsType": optionalString, "fieldsV1": anyObject, "subresource": optionalString,
	})
)

// objectMeta writes metadata on the index, without decoding it. It reports
// false for whatever it is not sure about; the caller then takes its output
// back and does a real round trip.
func (w *walker) objectMeta(v jsondoc.Value, of role) bool {
	repair := of == rootResource && w.storage // a missing generation is to be added
	if w.d.Kind(v) == jsondoc.Null {
		if repair {
			return false
		}
		w.out.Byte('{')
		w.out.Byte('}')
		w.note(Coerced, v, nil, "null reads as empty metadata")
		return true
	}
	if repair {
		if g, ok := w.d.Get(v, "generation"); !ok || w.d.Kind(g) != jsondoc.Number || w.d.Raw(g)[0] == '0' || w.d.Raw(g)[0] == '-' {
			return false
		}
	}
	return w.structure(v, objectMetaStructure)
}

func (w *walker) structure(v jsondoc.Value, s *structure) bool {
	if w.d.Kind(v) != jsondoc.Object {
		return false
	}
	w.out.Byte('{')
	first, required := true, 0
	for c := w.cursor(v); c.next(); {
		rank := s.names.Lookup(w.d.Key(c.key))
		if rank < 0 {
			w.changes |= Pruned
			if w.rec != nil && !w.rec.full() {
				w.rec.add(Change{What: Pruned, Path: w.path.field() + "." + string(w.d.Key(c.key)), Offset: w.offset(c.key),
					Detail: "ObjectMeta has no field of this name", Nearest: w.rec.nearest(string(w.d.Key(c.key)), s.names)})
			}
			continue
		}
		t := s.types[rank]
		keep, sure := w.metaValue(c.val, t)
		if !sure {
			c.abandon()
			return false
		}
		if t == requiredString {
			required++
		}
		if !keep {
			w.note(Coerced, c.key, w.d.Key(c.key), "empty metadata fields are not written")
			continue
		}
		w.member(c.key, &first)
		if !w.writeMeta(c.key, c.val, t) {
			c.abandon()
			return false
		}
	}
	w.out.Byte('}')
	return required == s.required
}

// abandon gives up the rest of the members.
func (c *cursor) abandon() {
	if c.unsorted {
		c.keys.Release()
	}
}

// metaValue decides whether a field is written at all, and whether its shape
// is one that writeMeta can handle.
func (w *walker) metaValue(v jsondoc.Value, t metaType) (keep, sure bool) {
	kind := w.d.Kind(v)
	if kind == jsondoc.Null {
		return false, t != requiredString
	}
	switch t {
	case optionalString:
		return w.d.End(v)-w.d.Offset(v) > 2, kind == jsondoc.String
	case requiredString:
		return true, kind == jsondoc.String
	case optionalInt:
		n, ok := w.d.Int64(v)
		return n != 0, kind == jsondoc.Number && ok
	case pointerInt:
		_, ok := w.d.Int64(v)
		return true, kind == jsondoc.Number && ok
	case pointerBool:
		return true, kind == jsondoc.True || kind == jsondoc.False
	case timestamp:
		return true, kind == jsondoc.String && isTimestamp(w.d.Raw(v))
	case stringList, ownerReferences, managedFields:
		return w.d.Next(v) > v+1, kind == jsondoc.Array
	case stringMap:
		return w.d.Next(v) > v+1, kind == jsondoc.Object
	case anyObject:
		return true, kind == jsondoc.Object
	}
	return false, false
}

// writeMeta writes a field's value; false if it is not sure how.
func (w *walker) writeMeta(k, v jsondoc.Value, t metaType) bool {
	switch t {
	case stringList:
		for _, c := range w.d.Items(v) {
			if w.d.Kind(c) != jsondoc.String {
				return false
			}
		}
		w.out.Value(v)
	case stringMap:
		end := w.d.Next(v)
		for c := v + 2; c < end; c += 2 {
			if w.d.Kind(c) != jsondoc.String {
				return false
			}
		}
		w.push(step{key: w.d.Key(k)})
		w.verbatim(v)
		w.pop()
	case ownerReferences:
		return w.structures(k, v, ownerReferenceStructure)
	case managedFields:
		return w.structures(k, v, managedFieldsStructure)
	case anyObject:
		if w.negativeZero(v) {
			return false // it is encoded and decoded twice, and loses its sign
		}
		w.push(step{key: w.d.Key(k)})
		w.verbatim(v)
		w.pop()
	default:
		w.out.Scalar(v)
	}
	return true
}

// negativeZero reports whether v contains a number that canonical JSON writes
// as -0, which reads back as the integer 0.
func (w *walker) negativeZero(v jsondoc.Value) bool {
	if w.d.IsCanonical(v) {
		return false
	}
	end := w.d.Next(v)
	for c := v; c < end; c++ {
		if w.d.Kind(c) == jsondoc.Number && w.d.Raw(c)[0] == '-' && w.d.Float64(c) == 0 {
			return true
		}
	}
	return false
}

func (w *walker) structures(k, v jsondoc.Value, s *structure) bool {
	w.push(step{key: w.d.Key(k)})
	defer w.pop()
	w.out.Byte('[')
	end := w.d.Next(v)
	i := 0
	for c := v + 1; c < end; c = w.d.Next(c) {
		if i > 0 {
			w.out.Byte(',')
		}
		w.push(step{kind: indexStep, index: i})
		ok := w.structure(c, s)
		w.pop()
		if !ok {
			return false
		}
		i++
	}
	w.out.Byte(']')
	return true
}

// isTimestamp reports whether the JSON string raw is a time in exactly the
// form that metav1.Time writes: RFC 3339 in UTC, whole seconds.
func isTimestamp(raw []byte) bool {
	const form = `"0000-00-00T00:00:00Z"`
	if len(raw) != len(form) {
		return false
	}
	for i, c := range raw {
		if form[i] == '0' {
			if c-'0' > 9 {
				return false
			}
		} else if c != form[i] {
			return false
		}
	}
	two := func(i int) int { return int(raw[i]-'0')*10 + int(raw[i+1]-'0') }
	year, month, day := two(1)*100+two(3), two(6), two(9)
	if year < 2 || month < 1 || month > 12 || day < 1 || two(12) > 23 || two(15) > 59 || two(18) > 59 {
		return false
	}
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days = 29
	}
	return day <= days
}

// readMetadata reads v as ObjectMeta; see convertMetadata.
func readMetadata(d *jsondoc.Doc, v jsondoc.Value, storage bool, note func(what Changes, name, detail string)) (*metav1.ObjectMeta, error) {
	if k := d.Kind(v); storage && k != jsondoc.Object && k != jsondoc.Null {
		return nil, fmt.Errorf("invalid metadata: expected object, got %T", d.Any(v))
	}
	return convertMetadata(d.AppendCanonical(nil, v), storage, note)
}

// convertMetadata reads canonical JSON as ObjectMeta. With storage set, fields
// that do not decode are dropped one by one; note, if not nil, is told of
// those and of unknown ones.
func convertMetadata(src []byte, storage bool, note func(what Changes, name, detail string)) (*metav1.ObjectMeta, error) {
	meta := &metav1.ObjectMeta{}
	unknown, err := kjson.UnmarshalStrict(src, meta)
	if err == nil {
		noteUnknown(unknown, note)
		return meta, nil
	}
	if !storage {
		return nil, err
	}
	d, perr := jsondoc.Parse(src, jsondoc.Limits{MaxDepth: 1 << 20})
	if perr != nil {
		return nil, perr
	}
	defer d.Release()
	meta = &metav1.ObjectMeta{}
	var single []byte
	for m := range d.Members(jsondoc.Root) {
		single = append(single[:0], '{')
		single = append(append(append(single, d.Raw(m.Key)...), ':'), d.Raw(m.Value)...)
		single = append(single, '}')
		if err := kjson.UnmarshalCaseSensitivePreserveInts(single, &metav1.ObjectMeta{}); err != nil {
			if note != nil {
				note(Coerced, d.Text(m.Key), "dropped, because it does not decode: "+err.Error())
			}
			continue
		}
		unknown, err := kjson.UnmarshalStrict(single, meta)
		if err != nil {
			return nil, err
		}
		noteUnknown(unknown, note)
	}
	return meta, nil
}

func noteUnknown(unknown []error, note func(what Changes, name, detail string)) {
	if note == nil {
		return
	}
	for _, u := range unknown {
		if f, ok := u.(kjson.FieldError); ok {
			note(Pruned, f.FieldPath(), "ObjectMeta has no field of this name")
		}
	}
}

// encodeMetadata returns the canonical JSON of meta.
func encodeMetadata(meta *metav1.ObjectMeta) ([]byte, error) {
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	d, err := jsondoc.Parse(raw, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return d.AppendCanonical(nil, jsondoc.Root), nil
}
