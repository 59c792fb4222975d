package crd

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/spelling"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// shape says what a value of a CRD has to be for an API server's decoder.
// null is accepted for everything and means nothing.
type shape struct {
	kind    shapeKind
	members []member // of an object, sorted by name
	each    *shape   // of a list or map
}

type shapeKind uint8

const (
	anything shapeKind = iota
	text
	flag
	integer32
	integer64
	timestamp
	bytes64
	object
	list
	mapping
)

type member struct {
	name  string
	shape *shape
}

var (
	aText   = &shape{kind: text}
	aFlag   = &shape{kind: flag}
	anInt32 = &shape{kind: integer32}
	anInt64 = &shape{kind: integer64}
	aTime   = &shape{kind: timestamp}
	texts   = listOf(aText)
	textMap = &shape{kind: mapping, each: aText}
)

func listOf(each *shape) *shape { return &shape{kind: list, each: each} }

func objectOf(members ...member) *shape {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return &shape{kind: object, members: members}
}

// allText makes members that are texts.
func allText(names ...string) []member {
	list := make([]member, len(names))
	for i, n := range names {
		list[i] = member{n, aText}
	}
	return list
}

var namesShape = objectOf(append(allText("plural", "singular", "kind", "listKind"), member{"shortNames", texts}, member{"categories", texts})...)

var versionShape = objectOf(
	member{"name", aText}, member{"served", aFlag}, member{"storage", aFlag}, member{"deprecated", aFlag}, member{"deprecationWarning", aText},
	member{"schema", objectOf(member{"openAPIV3Schema", &shape{}})}, // package syntax reads it
	member{"subresources", objectOf(
		member{"status", objectOf()},
		member{"scale", objectOf(allText("specReplicasPath", "statusReplicasPath", "labelSelectorPath")...)})},
	member{"additionalPrinterColumns", listOf(objectOf(append(allText("name", "type", "format", "description", "jsonPath"), member{"priority", anInt32})...))},
	member{"selectableFields", listOf(objectOf(allText("jsonPath")...))},
)

var specShape = objectOf(
	member{"group", aText}, member{"scope", aText}, member{"names", namesShape}, member{"versions", listOf(versionShape)}, member{"preserveUnknownFields", aFlag},
	member{"conversion", objectOf(member{"strategy", aText}, member{"webhook", objectOf(
		member{"conversionReviewVersions", texts},
		member{"clientConfig", objectOf(
			member{"url", aText}, member{"caBundle", &shape{kind: bytes64}},
			member{"service", objectOf(append(allText("namespace", "name", "path"), member{"port", anInt32})...)})})})},
)

var statusShape = objectOf(
	member{"acceptedNames", namesShape}, member{"storedVersions", texts}, member{"observedGeneration", anInt64},
	member{"conditions", listOf(objectOf(append(allText("type", "status", "reason", "message"),
		member{"lastTransitionTime", aTime}, member{"observedGeneration", anInt64})...))},
)

var metadataShape = objectOf(append(allText("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"),
	member{"generation", anInt64}, member{"creationTimestamp", aTime}, member{"deletionTimestamp", aTime}, member{"deletionGracePeriodSeconds", anInt64},
	member{"labels", textMap}, member{"annotations", textMap}, member{"finalizers", texts},
	member{"ownerReferences", listOf(objectOf(append(allText("apiVersion", "kind", "name", "uid"), member{"controller", aFlag}, member{"blockOwnerDeletion", aFlag})...))},
	member{"managedFields", listOf(objectOf(append(allText("manager", "operation", "apiVersion", "fieldsType", "subresource"), member{"time", aTime}, member{"fieldsV1", &shape{}})...))},
)...)

var crdShape = objectOf(
	member{"apiVersion", aText}, member{"kind", aText}, member{"metadata", metadataShape}, member{"spec", specShape}, member{"status", statusShape})

// shaper compares a document with its shape.
type shaper struct {
	doc  *jsondoc.Doc
	note func(check finding.ID, e *field.Error, w where) // of what is unknown or written twice; may be nil
	rest func(*espalier.SyntaxError)                     // of what no decoder accepts, if the rest is wanted, too; may be nil
	path []byte
	at   []byte // the pointer
}

// check returns why a decoder refuses the value v, nil if it does not.
func (s *shaper) check(v jsondoc.Value, want *shape) *espalier.SyntaxError {
	kind := s.doc.Kind(v)
	if kind == jsondoc.Null {
		return nil
	}
	switch want.kind {
	case anything:
	case object, mapping:
		if kind != jsondoc.Object {
			return s.wrong(v, "an object")
		}
		return s.object(v, want)
	case list:
		if kind != jsondoc.Array {
			return s.wrong(v, "an array")
		}
		for i, item := range s.doc.Items(v) {
			path, at := len(s.path), len(s.at)
			s.path = append(strconv.AppendInt(append(s.path, '['), int64(i), 10), ']')
			s.at = strconv.AppendInt(append(s.at, '/'), int64(i), 10)
			if err := s.check(item, want.each); err != nil {
				return err
			}
			s.path, s.at = s.path[:path], s.at[:at]
		}
	default:
		return s.scalar(v, want.kind)
	}
	return nil
}

func (s *shaper) object(v jsondoc.Value, want *shape) *espalier.SyntaxError {
	for m := range s.doc.Members(v) {
		each := want.each
		key := s.doc.Key(m.Key)
		known := each != nil
		if !known {
			var i int
			if i, known = slices.BinarySearchFunc(want.members, key, func(a member, b []byte) int { return strings.Compare(a.name, string(b)) }); known {
				each = want.members[i].shape
			}
		}
		path, at := len(s.path), len(s.at)
		if path > 0 {
			s.path = append(s.path, '.')
		}
		s.path = append(s.path, key...)
		s.at = syntax.AppendToken(s.at, string(key))
		if m.Duplicate && s.note != nil {
			s.note("duplicate-key", &field.Error{Type: field.ErrorTypeDuplicate, Field: string(s.path), BadValue: string(key),
				Detail: "duplicate field: API servers use the last value"}, where{doc: s.doc, at: m.Key, pointer: string(s.at)})
		}
		if !known {
			s.unknown(m.Key, key, want)
		} else if err := s.check(m.Value, each); err != nil {
			return err
		}
		s.path, s.at = s.path[:path], s.at[:at]
	}
	return nil
}

func (s *shaper) unknown(k jsondoc.Value, key []byte, want *shape) {
	if s.note == nil {
		return
	}
	detail := "unknown field: API servers drop it, or refuse it where field validation is strict"
	if near := nearest(string(key), want.members); near != "" {
		detail += "; did you mean " + strconv.Quote(near) + "?"
	}
	s.note(Checks[unknownField].ID, &field.Error{Type: field.ErrorTypeForbidden, Field: string(s.path), BadValue: "", Detail: detail},
		where{doc: s.doc, at: k, pointer: string(s.at)})
}

func (s *shaper) scalar(v jsondoc.Value, want shapeKind) *espalier.SyntaxError {
	kind := s.doc.Kind(v)
	switch want {
	case text:
		if kind != jsondoc.String {
			return s.wrong(v, "a string")
		}
	case flag:
		if kind != jsondoc.True && kind != jsondoc.False {
			return s.wrong(v, "a boolean")
		}
	case integer32, integer64:
		n, ok := s.doc.Int64(v)
		if !ok || want == integer32 && (n < math.MinInt32 || n > math.MaxInt32) {
			return s.wrong(v, "an integer")
		}
	case timestamp:
		if kind != jsondoc.String {
			return s.wrong(v, "a time")
		}
		if _, err := time.Parse(time.RFC3339, s.doc.Text(v)); err != nil {
			return s.wrong(v, "a time such as 2006-01-02T15:04:05Z")
		}
	case bytes64:
		if _, ok := decodeBytes(s.doc, v); !ok {
			return s.wrong(v, "base64")
		}
	}
	return nil
}

// decodeBytes reads base64, or a list of bytes as encoding/json accepts it.
func decodeBytes(d *jsondoc.Doc, v jsondoc.Value) ([]byte, bool) {
	switch d.Kind(v) {
	case jsondoc.String:
		b, err := base64.StdEncoding.DecodeString(d.Text(v))
		return b, err == nil
	case jsondoc.Array:
		b := make([]byte, 0, d.Len(v))
		for _, item := range d.Items(v) {
			n := int64(0)
			if d.Kind(item) != jsondoc.Null {
				var ok bool
				if n, ok = d.Int64(item); !ok || n < 0 || n > math.MaxUint8 {
					return nil, false
				}
			}
			b = append(b, byte(n))
		}
		return b, true
	}
	return nil, false
}

func (s *shaper) wrong(v jsondoc.Value, want string) *espalier.SyntaxError {
	err := &espalier.SyntaxError{Offset: s.doc.Offset(v), Pointer: string(s.at), Msg: "must be " + want + ", but is " + syntax.Article(s.doc.Kind(v))}
	if s.rest != nil {
		s.rest(err)
		return nil
	}
	return err
}

// nearest returns the member whose name is most like name, if one is alike
// enough to be what was meant.
func nearest(name string, members []member) string {
	return spelling.Nearest(name, func(yield func(string) bool) {
		for _, m := range members {
			if !yield(m.name) {
				return
			}
		}
	})
}
