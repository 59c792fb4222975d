package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// status looks at the subresource and the field of that name.
func (c *checker) status(root *node) {
	s := root.schema
	status := s.Property("status")
	const fix = "Specify the fields of status in the schema, or x-kubernetes-preserve-unknown-fields: true to keep all that controllers write. If they write nothing, disable the subresource."
	lost := c.version.Status && !c.crd.PreserveUnknownFields
	switch {
	case lost && status == nil && root.pruned() && s.Type == "object":
		c.at("status-unspecified", root, "", "the status subresource is enabled but the schema has no status: the API server prunes what controllers write to it", fix)
	case lost && status != nil && status.Type == "object" && !structured(status):
		n := &node{parent: root, schema: status, keyword: "properties", name: "status", index: -1}
		c.at("status-unspecified", n, "", "the status subresource is enabled but status has no fields: the API server prunes what controllers write to it", fix)
	case !c.version.Status && status != nil && status.Type == "object" && structured(status):
		n := &node{parent: root, schema: status, keyword: "properties", name: "status", index: -1}
		c.at("status-without-subresource", n, "", "the schema has status but the status subresource is not enabled: users can write status, a controller's update also replaces spec, and every write of status changes metadata.generation",
			"Enable it with subresources: {status: {}} beside the schema. Controllers must then write status through the subresource.")
	}
}

// versions looks at what a CRD says about its versions outside their schemas.
// schemas are those of the versions, nil where there is none.
func (c *checker) versions(schemas []*syntax.Schema) {
	seen := map[jsondoc.Value]bool{} // what v1beta1 says for all versions at once
	for i, s := range schemas {
		v := &c.crd.Versions[i]
		pointer := "/spec/versions/" + strconv.Itoa(i)
		if s != nil && !c.crd.PreserveUnknownFields {
			c.columns(v, pointer, s, seen)
			c.scale(v, pointer, s, seen)
		}
		if !v.Served && !v.Storage && len(schemas) > 1 {
			c.add("version-unused", pathOf(pointer), pointer, c.doc.Offset(crdtree.At(v)), fmt.Sprintf("version %s is neither served nor stored", v.Name),
				"Keep the version until no object is stored in it and status.storedVersions does not list it. Then remove it.")
		}
	}
	if _, rules := c.crd.Annotations[conversion.Annotation]; c.crd.Conversion.Strategy != "Webhook" && !rules {
		c.losses(schemas)
	}
}

// around returns the pointer of what a part of a version is in: the version or, where
// v1beta1 says it for all versions, spec.
func (c *checker) around(v *crd.Version, pointer string, part jsondoc.Value) string {
	if at := crdtree.At(v); at != jsondoc.Root && at < part && part < c.doc.Next(at) {
		return pointer
	}
	return "/spec"
}

// offset returns where a member of v is, or v if there is none.
func (c *checker) offset(v jsondoc.Value, name string) int {
	if m, ok := c.doc.Get(v, name); ok {
		v = m
	}
	return c.doc.Offset(v)
}

// scale looks at the scale subresource beside a schema.
func (c *checker) scale(v *crd.Version, pointer string, s *syntax.Schema, seen map[jsondoc.Value]bool) {
	if v.Scale == nil {
		return
	}
	part := crdtree.At(v.Scale)
	if seen[part] {
		return
	}
	seen[part] = true
	selector := ""
	if v.Scale.LabelSelectorPath != nil {
		selector = *v.Scale.LabelSelectorPath
	}
	for _, p := range []struct{ name, path, kind string }{
		{"specReplicasPath", v.Scale.SpecReplicasPath, "integer"}, {"statusReplicasPath", v.Scale.StatusReplicasPath, "integer"},
		{"labelSelectorPath", selector, "string"},
	} {
		if p.path == "" {
			continue
		}
		at := c.around(v, pointer, part) + "/subresources/scale/" + p.name
		f, lost := follow(s, p.path)
		switch {
		case lost != "":
			c.add("scale-unknown-path", pathOf(at), at, c.offset(part, p.name), fmt.Sprintf("%s leads to no field: %s", p.path, lost),
				"Specify the field, or correct the path.")
		case f != nil && f.Type != "" && f.Type != p.kind:
			c.add("scale-type", pathOf(at), at, c.offset(part, p.name), fmt.Sprintf("%s leads to a field of type %s, but the scale subresource reads only values of type %s", p.path, f.Type, p.kind),
				"Use the path of a field of type "+p.kind+".")
		}
	}
}

// fits says which types of columns show values of a type. Columns of type
// string show everything.
var fits = map[string]string{
	"integer": "integer number", "number": "integer number", "boolean": "boolean", "date": "string",
}

// columns looks at the columns beside a schema.
func (c *checker) columns(v *crd.Version, pointer string, s *syntax.Schema, seen map[jsondoc.Value]bool) {
	for i := range v.Columns {
		column := &v.Columns[i]
		part := crdtree.At(column)
		if column.JSONPath == "" || seen[part] {
			continue
		}
		seen[part] = true
		c.column(column, part, c.around(v, pointer, part)+"/additionalPrinterColumns/"+strconv.Itoa(i), s)
	}
}

func (c *checker) column(column *crd.Column, part jsondoc.Value, pointer string, s *syntax.Schema) {
	key := "jsonPath"
	if _, ok := c.doc.Get(part, key); !ok {
		key = "JSONPath" // in v1beta1
	}
	f, lost := follow(s, column.JSONPath)
	if lost != "" {
		at := pointer + "/" + key
		c.add("column-unknown-path", pathOf(at), at, c.offset(part, key), fmt.Sprintf("column %s is always empty: %s", column.Name, lost),
			"Specify the field, or correct the path.")
		return
	}
	if f == nil || f.Type == "" || f.IntOrString {
		return
	}
	if types, known := fits[column.Type]; known && !strings.Contains(types, f.Type) {
		at := pointer + "/type"
		c.add("column-type", pathOf(at), at, c.offset(part, "type"), fmt.Sprintf("column %s is always empty: it has type %s, but its field has type %s", column.Name, column.Type, f.Type), "Use type: "+shownAs(f)+".")
	}
}

func shownAs(s *syntax.Schema) string {
	switch {
	case s.Type == "string" && s.Format == "date-time":
		return "date"
	case s.Type == "integer" || s.Type == "number" || s.Type == "boolean":
		return s.Type
	}
	return "string"
}

// maxLost is how many fields are named that a version loses.
const maxLost = 3

// losses finds fields that one served version has and another has not, where
// nothing converts between them.
func (c *checker) losses(schemas []*syntax.Schema) {
	storage := -1
	for i := range c.crd.Versions {
		if c.crd.Versions[i].Storage {
			storage = i
		}
	}
	if storage < 0 || schemas[storage] == nil || c.crd.PreserveUnknownFields {
		return
	}
	stored := c.crd.Versions[storage].Name
	for i := range schemas {
		if i == storage || !c.crd.Versions[i].Served || schemas[i] == nil || schemas[i] == schemas[storage] {
			continue
		}
		v := &c.crd.Versions[i]
		for _, way := range []struct {
			from, to *syntax.Schema
			detail   string
		}{
			{schemas[i], schemas[storage], "no webhook converts %[1]s to the storage version %[2]s, which lacks some of its fields: values that clients write to %[3]s in %[1]s are lost"},
			{schemas[storage], schemas[i], "no webhook converts the storage version %[2]s to %[1]s, which lacks some of its fields: a client that reads an object in %[1]s and writes it back removes %[3]s"},
		} {
			l := losing{}
			l.compare(way.from, way.to, nil)
			if len(l.lost) == 0 {
				continue
			}
			pointer := "/spec/versions/" + strconv.Itoa(i)
			c.add("versions-lose-fields", pathOf(pointer), pointer, c.doc.Offset(crdtree.At(v)), fmt.Sprintf(way.detail, v.Name, stored, strings.Join(l.lost, ", ")),
				fmt.Sprintf("Specify the same fields in both versions, or set spec.conversion.strategy to Webhook, or stop serving %s.", v.Name))
		}
	}
}

// losing compares two versions.
type losing struct{ lost []string }

// crumb is a field on the way to another.
type crumb struct {
	before *crumb
	text   string
}

func (b *crumb) String() string {
	var list []string
	for ; b != nil; b = b.before {
		list = append(list, b.text)
	}
	slices.Reverse(list)
	return strings.Join(list, "")
}

// compare notes the fields of a that b prunes.
func (l *losing) compare(a, b *syntax.Schema, at *crumb) {
	if b.PreserveUnknownFields != nil || len(l.lost) >= maxLost {
		return
	}
	for _, p := range a.Properties {
		if at == nil && typeMeta(p.Name) {
			continue
		}
		here := &crumb{at, "." + p.Name}
		switch q := b.Property(p.Name); {
		case q != nil:
			l.compare(p.Schema, q, here)
		case b.AdditionalProperties == nil && b.Type == "object":
			l.lost = append(l.lost, here.String())
		}
		if len(l.lost) >= maxLost {
			return
		}
	}
	if x, y := a.ItemSchema(), b.ItemSchema(); x != nil && y != nil {
		l.compare(x, y, &crumb{at, "[]"})
	}
	if x, y := a.AdditionalProperties, b.AdditionalProperties; x != nil && y != nil && x.Schema != nil && y.Schema != nil {
		l.compare(x.Schema, y.Schema, &crumb{at, ".*"})
	}
}
