package conversion

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// identity keeps a value.
type identity struct{}

func (identity) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	out[0] = in[0]
	return buf
}

// conforming keeps a value that a server with the schema keeps as it is.
type conforming struct{ schema *syntax.Schema }

func (c conforming) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if in[0] == nil {
		return buf
	}
	doc, err := jsondoc.Parse(in[0], jsondoc.Limits{})
	if err != nil {
		return buf
	}
	defer doc.Release()
	if conforms(doc, jsondoc.Root, c.schema) {
		out[0] = in[0]
	}
	return buf
}

// conforms reports whether a value has the types and only the fields that a schema specifies. It may report false for
// a value that does: embedded objects are left to the server.
func conforms(doc *jsondoc.Doc, v jsondoc.Value, s *syntax.Schema) bool {
	if s == nil {
		return true
	}
	keeps := s.PreserveUnknownFields != nil && *s.PreserveUnknownFields
	switch k := doc.Kind(v); {
	case k == jsondoc.Null:
		return s.Nullable
	case s.EmbeddedResource:
		return false
	case s.IntOrString:
		return k == jsondoc.Number || k == jsondoc.String
	case k == jsondoc.Object:
		return (s.Type == "object" || s.Type == "") && conformingMembers(doc, v, s, keeps)
	case k == jsondoc.Array:
		if s.Type != "array" && (s.Type != "" || !keeps) {
			return false
		}
		for _, item := range doc.Items(v) {
			if !conforms(doc, item, s.ItemSchema()) {
				return false
			}
		}
		return true
	case s.Type == "":
		return keeps
	}
	return kindsOf(s).Has(doc.Kind(v))
}

func conformingMembers(doc *jsondoc.Doc, v jsondoc.Value, s *syntax.Schema, keeps bool) bool {
	end := doc.Next(v)
	for k := v + 1; k < end; k = doc.Next(k + 1) {
		p := s.Property(string(doc.Key(k)))
		if p == nil && s.AdditionalProperties != nil && s.AdditionalProperties.Allows {
			p = s.AdditionalProperties.Schema
		} else if p == nil && !keeps {
			return false
		}
		if !conforms(doc, k+1, p) {
			return false
		}
	}
	return true
}
