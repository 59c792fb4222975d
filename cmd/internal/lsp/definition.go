package lsp

import (
	"context"
	"strings"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// schemaPlace returns where the CRD specifies the field at the cursor. For a field that it does not specify, this is
// the nearest field around it.
func (s *Server) schemaPlace(_ context.Context, v *view) (any, error) {
	v.read(s.engine)
	e, _ := v.outline.at(v.offset)
	if e.parent == nil {
		return nil, nil
	}
	sub := subjectOf(e)
	crd := s.crdOf(&sub)
	if crd == nil || sub.isCRD() {
		return nil, nil
	}
	schema, base, ok := crd.Schema(sub.groupVersionKind().Version)
	if !ok {
		return nil, nil
	}
	at, _ := crd.Document().LocateKey(base + schemaPointer(schema, sub.steps))
	location := s.location(crd.Document(), at)
	return &location, nil
}

// schemaPointer follows steps through a schema as far as it specifies them.
func schemaPointer(schema []byte, steps []*entry) string {
	doc, err := jsondoc.Parse(schema, jsondoc.Limits{})
	if err != nil {
		return ""
	}
	defer doc.Release()
	n := schemaNode{doc: doc, v: jsondoc.Root}
	var b strings.Builder
	for _, e := range steps {
		var below node
		var way string
		if e.item {
			below, way = n.item(), "/items"
		} else if properties, ok := n.get("properties"); ok && doc.Kind(properties) == jsondoc.Object {
			v, ok := doc.Get(properties, e.key)
			below, way = n.object(v, ok), "/properties/"+escape.Replace(e.key)
		}
		if below == nil && !e.item {
			below, way = n.object(n.get("additionalProperties")), "/additionalProperties"
		}
		next, ok := below.(schemaNode)
		if !ok {
			break
		}
		b.WriteString(way)
		n = next
	}
	return b.String()
}

// location translates a place in the document of a CRD. The document may be a part of an open file.
func (s *Server) location(d *manifest.Document, at manifest.Position) Location {
	from, to := d.File.Offset(at.Line, at.Column), d.File.Offset(at.Line, at.EndColumn)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.documents {
		for _, c := range open.split() {
			if c.done.Load() && c.file == d.File {
				return Location{URI: open.uri, Range: open.text.span(c.offset+from, c.offset+to)}
			}
		}
	}
	t := newText(string(d.File.Text))
	return Location{URI: pathToURI(d.File.Name), Range: t.span(from, to)}
}
