package conformance

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/openapi"
)

// editor is a JSON Schema of ours, compiled by a third-party validator.
func editor(schema []byte, o openapi.Options) (*jsonschema.Schema, error) {
	d, err := crd.Parse(wrapSchema(schema))
	if err != nil {
		return nil, err
	}
	raw, err := openapi.JSONSchema(d, d.Version("v1"), o)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tree.json", value); err != nil {
		return nil, err
	}
	return c.Compile("tree.json")
}

// TestJSONSchema checks that the JSON Schemas which editors get agree with the reference about objects: that they never
// refuse what a server accepts, and refuse nearly everything that it refuses.
func TestJSONSchema(t *testing.T) {
	schemas := seeds(t)
	for i, s := range archived(t) {
		if i%5 == 0 { // all of them take minutes
			schemas = append(schemas, s)
		}
	}
	var accepted, refused, missed, unknown int
	var examples []string
	for _, s := range schemas {
		if !oracle.Check(s.JSON, false).Accepted() {
			continue
		}
		theirs, err := oracle.Compile(s.JSON)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := generate.Compile(s.JSON)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := editor(s.JSON, openapi.Options{})
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		strict, err := editor(s.JSON, openapi.Options{Strict: true})
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		objects := uint64(1000)
		if s.Source != "testdata" {
			objects = 6
		}
		for seed := range objects {
			mode := []generate.Mode{generate.Valid, generate.Breach, generate.Near}[seed%3]
			object := plan.Append(nil, seed, generate.Options{Mode: mode, Compact: true, Resolve: true, Metadata: `{"name":"a"}`})
			normal := theirs.Normalize(object, oracle.Request)
			if normal.Err != nil {
				continue
			}
			v := theirs.Validate(normal.Bytes, oracle.ValidateOptions{NoRules: true})
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
			if err != nil {
				continue
			}
			// That objects are of the kind is up to the server's handlers, which the reference here is without.
			if o, ok := value.(map[string]any); !ok || o["apiVersion"] != "orchard.example/v1" || o["kind"] != "Tree" {
				continue
			}
			if mode != generate.Breach {
				// Of the fields of managedFields, and of objects below additionalProperties: true, nothing is said.
				dropped := slices.ContainsFunc(normal.Unknown, func(path string) bool { return !strings.Contains(path, "metadata.managedFields") }) &&
					!bytes.Contains(s.JSON, []byte(`"additionalProperties":true`)) && s.Name != "map.json"
				switch err := strict.Validate(value); {
				case mode == generate.Valid && v.Valid() && !dropped && err != nil:
					t.Errorf("%s: a server accepts, and drops nothing of\n%s\n%v", s.Name, object, err)
				case dropped && err == nil:
					t.Errorf("%s: nothing is said of %v in\n%s", s.Name, normal.Unknown, object)
				case dropped:
					unknown++
				}
			}
			err = ours.Validate(value)
			switch {
			case v.Valid() && err != nil && excused(object, err):
			case v.Valid() && err != nil:
				t.Errorf("%s: a server accepts\n%s\n%v", s.Name, object, err)
			case v.Valid():
				accepted++
			case err != nil:
				refused++
			case strings.Contains(v.Errors[0], "metadata.") || noFormat.MatchString(v.Errors[0]):
				// The many rules about metadata, and formats that JSON Schema does not have.
			default:
				missed++
				examples = append(examples, fmt.Sprintf("%s: %s", s.Name, v.Errors[0]))
			}
		}
	}
	slices.Sort(examples)
	t.Logf("%d accepted by both, %d refused by both, %d refused by the server only; %d with unknown fields refused if strict", accepted, refused, missed, unknown)
	for _, e := range examples[:min(len(examples), 20)] {
		t.Log(e)
	}
	if accepted < 500 || refused < 200 || unknown < 100 || missed*20 > refused {
		t.Error("too little agreement")
	}
}

// noFormat matches what servers say about formats that JSON Schema does not have, or that mean something else there.
var noFormat = regexp.MustCompile(`in body must be of type (byte|duration|uuid)`)

// excused reports whether our schema may refuse an object that a server accepts: formats are read more strictly by
// others; a server takes null as left out before it looks at anyOf and the like; and it accepts embedded resources without any
// field, and arrays for strings with a format.
func excused(object []byte, err error) bool {
	text := err.Error()
	return strings.Contains(text, "is not valid ") ||
		strings.Contains(text, "got array, want string") ||
		strings.Contains(text, "missing properties 'apiVersion', 'kind'") ||
		strings.Contains(text, "Of' failed") && bytes.Contains(object, []byte("null"))
}
