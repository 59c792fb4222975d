package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Options say what a JSON Schema is for.
type Options struct {
	// Strict refuses what a server would silently drop, so that editors
	// underline it: fields that the schema does not have, misspelt ones say,
	// and null where it is not allowed.
	Strict bool
}

const draft = "http://json-schema.org/draft-07/schema#"

// JSONSchema returns a JSON Schema of draft-07 for the objects of a version as
// people write them: what a server fills in is not required.
//
// It accepts the objects that a server accepts. With Strict it accepts only the
// objects that a server does not prune. CEL rules are in descriptions, because
// JSON Schema cannot express them. Formats keep their names, and their meaning
// depends on the validator, except those that mean something else in JSON Schema.
func JSONSchema(d *crd.CRD, v *crd.Version, o Options) ([]byte, error) {
	s, err := parse(d, v)
	if err != nil {
		return nil, err
	}
	w := &writer{options: o}
	w.object(func() {
		w.text("$schema", draft)
		w.resource(d, v, syntax.Unfold(s))
		w.definitions(func() {})
	})
	return w.finish(), nil
}

// Catalog returns one JSON Schema for the objects of all versions of all
// CRDs. It chooses by apiVersion and kind; objects of other kinds are
// valid. Of CRDs of the same kind the first counts.
func Catalog(list []*crd.CRD, o Options) ([]byte, error) {
	w := &writer{options: o}
	var entries []entry
	seen := map[string]bool{}
	for _, d := range list {
		for i := range d.Versions {
			v := &d.Versions[i]
			name := ModelName(d.Group, v.Name, d.Kind)
			if seen[name] {
				continue
			}
			seen[name] = true
			s, err := parse(d, v)
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry{name, d, v, syntax.Unfold(s)})
		}
	}
	w.object(func() {
		w.text("$schema", draft)
		w.text("type", "object")
		w.texts("required", []string{"apiVersion", "kind"})
		w.key("properties")
		w.object(func() {
			w.suggest("apiVersion", entries, func(e entry) string { return apiVersion(e.crd, e.version) })
			w.suggest("kind", entries, func(e entry) string { return e.crd.Kind })
		})
		w.items("allOf", len(entries), func(i int) { w.choice(entries[i]) })
		w.definitions(func() {
			for _, e := range entries {
				w.key(e.name)
				w.object(func() { w.resource(e.crd, e.version, e.schema) })
			}
		})
	})
	return w.finish(), nil
}

// entry is a version in a catalog.
type entry struct {
	name    string
	crd     *crd.CRD
	version *crd.Version
	schema  *syntax.Schema
}

// suggest writes a property of type string with values for editors to offer.
func (w *writer) suggest(name string, entries []entry, value func(entry) string) {
	var values []string
	for _, e := range entries {
		values = append(values, value(e))
	}
	slices.Sort(values)
	values = slices.Compact(values)
	w.key(name)
	w.object(func() {
		w.text("type", "string")
		if len(values) == 0 {
			return
		}
		w.key("anyOf")
		w.array(func() {
			w.next()
			w.object(func() { w.texts("enum", values) })
			w.next()
			w.object(func() { w.text("type", "string") })
		})
	})
}

// choice writes that objects of a version are as its CRD says.
func (w *writer) choice(e entry) {
	w.object(func() {
		w.key("if")
		w.object(func() {
			w.texts("required", []string{"apiVersion", "kind"})
			w.key("properties")
			w.object(func() {
				w.constant("apiVersion", apiVersion(e.crd, e.version), "")
				w.constant("kind", e.crd.Kind, "")
			})
		})
		w.key("then")
		w.object(func() { w.text("$ref", "#/definitions/"+pointerToken(e.name)) })
	})
}

// parse reads the schema of a version; it is nil if there is none.
func parse(d *crd.CRD, v *crd.Version) (*syntax.Schema, error) {
	s := crdtree.Parse(v)
	if len(s.Problems) > 0 {
		return nil, fmt.Errorf("the schema of version %q of %s cannot be read: %s%s %s", v.Name, d.Name, v.Pointer, s.Problems[0].Pointer, s.Problems[0].Message)
	}
	return s.Tree, nil
}

// ModelName is the name under which the schema of a kind is published:
// com.example.stable.v1.CronTab for CronTab of stable.example.com/v1.
func ModelName(group, version, kind string) string {
	parts := strings.Split(group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, version, kind), ".")
}

func apiVersion(d *crd.CRD, v *crd.Version) string {
	if d.Group == "" {
		return v.Name
	}
	return d.Group + "/" + v.Name
}

func pointerToken(name string) string {
	return string(syntax.AppendToken(nil, name)[1:])
}
