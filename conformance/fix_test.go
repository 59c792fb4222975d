package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
	"github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/finding"
)

// fixCase is a schema that is not structural.
type fixCase struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Status bool            `json:"status"` // the status subresource is enabled
	Cannot *finding.ID     `json:"cannot"` // the rule of the note that says that it cannot be fixed
}

// fixCases are those of testdata/fix and of the documents.
func fixCases(t *testing.T) []fixCase {
	t.Helper()
	var cases []fixCase
	files, err := filepath.Glob("testdata/fix/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(data), "\n---\n") {
			var c fixCase
			if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
				t.Fatalf("%s: %v in\n%s", file, err, text)
			}
			c.Name = strings.TrimSuffix(filepath.Base(file), ".yaml") + "/" + c.Name
			cases = append(cases, c)
		}
	}
	return append(cases, fixDocuments(t)...)
}

// fixDocuments are the examples of the documents that clusters refuse.
func fixDocuments(t *testing.T) []fixCase {
	t.Helper()
	files, err := filepath.Glob("../testdata/documents/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	var cases []fixCase
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, text, found := strings.Cut(string(data), "\n-- schema.")
		if !found {
			continue
		}
		_, text, _ = strings.Cut(text, "--\n")
		text, _, _ = strings.Cut(text, "\n-- ")
		schema, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			continue // an example of what cannot be read
		}
		if v := oracle.Check(schema, false); len(v.All()) == 0 && v.Undecodable == nil {
			continue
		}
		c := fixCase{Name: "documents/" + strings.TrimSuffix(filepath.Base(file), ".txtar"), Schema: schema}
		if rule, ok := unfixable[c.Name]; ok {
			c.Cannot = &rule
		}
		cases = append(cases, c)
	}
	return cases
}

// unfixable are the examples of the documents that cannot be fixed, and why.
var unfixable = map[string]finding.ID{
	// The schemas it refers to stand among the properties.
	"documents/validation-proposal-noxu-as-written": "unsupported-ref",
}

// crdOf puts a schema into a CRD.
func crdOf(schema []byte, status bool) []byte {
	subresources := ""
	if status {
		subresources = `"subresources":{"status":{}},`
	}
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
		`"metadata":{"name":"trees.orchard.example"},"spec":{"group":"orchard.example","scope":"Namespaced",`+
		`"names":{"kind":"Tree","plural":"trees","singular":"tree","listKind":"TreeList"},"versions":[{"name":"v1","served":true,"storage":true,%s"schema":{"openAPIV3Schema":%s}}]}}`,
		subresources, schema)
}

const schemaPointer = "/spec/versions/0/schema/openAPIV3Schema"

func schemaOf(t *testing.T, doc []byte) []byte {
	t.Helper()
	n, err := tree.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	return n.Get("spec").Get("versions").Kids[0].Get("schema").Get("openAPIV3Schema").Bytes()
}

// fixCounts is what a run has seen.
type fixCounts struct {
	fixed, unfixable int // schemas
	inferred         int // fixed schemas with a note that names an inferred type
	validated        int // schemas that clusters could be asked about before they were fixed
	objects          int // that the old schema accepts, and so does the new one
}

func (c fixCounts) String() string {
	return fmt.Sprintf("%d schemas fixed (%d with inferred types), %d that cannot be; %d of them with %d objects that the old schema accepts",
		c.fixed, c.inferred, c.unfixable, c.validated, c.objects)
}

// TestFix fixes every case. Upstream accepts the result as structural, the new schema accepts the generated objects that
// the old one accepts, and pruning by it loses no field that the old one mentions; or a note says that it cannot be done,
// and nothing is changed.
func TestFix(t *testing.T) {
	var counts fixCounts
	names := map[string]bool{}
	for _, c := range fixCases(t) {
		if names[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		names[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			result := runFix(t, c, 300, &counts)
			if cannot := cannotRule(result); c.Cannot != nil && (cannot == nil || *cannot != *c.Cannot) {
				t.Errorf("is expected not to be fixable because of %q: %+v", *c.Cannot, result.Notes)
			} else if c.Cannot == nil && cannot != nil {
				t.Errorf("is expected to be fixable: %+v", result.Notes)
			}
		})
	}
	t.Log(counts)
	if counts.fixed < 80 || counts.unfixable < 10 || counts.objects < 5000 {
		t.Errorf("too little was fixed: %v", counts)
	}
}

func cannotRule(r fix.Result) *finding.ID {
	for _, n := range r.Notes {
		if n.Kind == fix.Cannot {
			return &n.Check
		}
	}
	return nil
}

// runFix fixes a schema and checks what must hold.
func runFix(t *testing.T, c fixCase, objects int, counts *fixCounts) fix.Result {
	t.Helper()
	before := oracle.Check(c.Schema, c.Status)
	if len(before.All()) == 0 && before.Undecodable == nil {
		t.Errorf("nothing is wrong with the schema: %s", c.Schema)
	}
	doc := crdOf(c.Schema, c.Status)
	r, err := fix.CRD(doc)
	if err != nil {
		t.Fatal(err)
	}
	if cannotRule(r) != nil {
		counts.unfixable++
		if r.Changed || !bytes.Equal(r.JSON, doc) {
			t.Error("a CRD that cannot be fixed was changed")
		}
		return r
	}
	if !r.Changed {
		t.Error("nothing was changed")
		return r
	}
	counts.fixed++
	fixed := schemaOf(t, r.JSON)
	if after := oracle.Check(fixed, c.Status); len(after.All()) > 0 || len(after.Elsewhere) > 0 || after.Undecodable != nil || after.Panic != nil {
		t.Errorf("upstream does not accept the result: %v\n%s", after, fixed)
		return r
	}
	again, err := fix.CRD(r.JSON)
	if err != nil || again.Changed {
		t.Errorf("fixing the result changes it again: %v %+v", err, again.Edits)
	}
	assumed := assumption(t, r, fixed)
	if assumed != nil {
		counts.inferred++
	}
	j := validators(t, c.Schema, fixed, assumed)
	if j == nil {
		return r // no cluster ever accepted the old schema: there are no objects
	}
	counts.validated++
	counts.objects += j.run(t, c.Schema, fixed, objects)
	return r
}

// assumption is the schema that says nothing but the types that were inferred, or nil.
func assumption(t *testing.T, r fix.Result, fixed []byte) []byte {
	t.Helper()
	source, err := tree.Parse(fixed)
	if err != nil {
		t.Fatal(err)
	}
	var all *tree.Node
	for _, n := range r.Notes {
		if n.Kind != fix.Narrower {
			continue
		}
		if all == nil {
			all = tree.Obj()
		}
		from, to := source, all
		tokens := strings.Split(strings.TrimPrefix(n.Pointer, schemaPointer+"/"), "/")
		for i, token := range tokens {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
			parent := from
			if from = from.Get(token); from == nil {
				t.Fatalf("the note on %s leads nowhere in %s", n.Pointer, fixed)
			}
			if i == len(tokens)-1 {
				to.Set(token, from.Clone())
				if parent.Get("nullable").Is("true") {
					to.Set("nullable", tree.Lit("true"))
				}
				break
			}
			if to.Get(token) == nil {
				to.Set(token, tree.Obj())
			}
			to = to.Get(token)
		}
	}
	if all == nil {
		return nil
	}
	return all.Bytes()
}

// fixValidators are upstream's validator and the engine, each for both schemas.
type fixValidators struct {
	before, after, assumed validation.SchemaValidator
	was, is                *espalier.Schema
	pruner                 *oracle.Schema
	mentioned              *tree.Node
}

func validators(t *testing.T, old, fixed, assumed []byte) *fixValidators {
	t.Helper()
	j := &fixValidators{}
	var err error
	if neverSupported(old) {
		return nil
	}
	if j.was, err = espalier.Compile(old, espalier.CompileOptions{ValidationOnly: true}); err != nil {
		j.was = nil // upstream's validator is less strict
	}
	if j.is, err = espalier.Compile(fixed, espalier.CompileOptions{}); err != nil {
		t.Fatal(err)
	}
	j.before, j.after = validatorOf(t, old), validatorOf(t, fixed)
	if assumed != nil {
		j.assumed = validatorOf(t, assumed)
	}
	if j.pruner, err = oracle.Compile(fixed); err != nil {
		return nil // upstream accepts defaults of the root that it cannot serve
	}
	if j.mentioned, err = tree.Parse(old); err != nil {
		t.Fatal(err)
	}
	return j
}

// neverSupported reports whether a schema has keywords that no cluster ever knew: upstream's validator cannot read them,
// ignores them, or crashes.
func neverSupported(schema []byte) bool {
	found, err := espalier.Check(schema, espalier.CheckOptions{})
	return err != nil || slices.ContainsFunc(found, func(f finding.Finding) bool {
		return strings.HasPrefix(string(f.Check), "unsupported-") || slices.Contains([]finding.ID{"items-tuple", "type-unknown", "type-null", "unique-items"}, f.Check)
	})
}

func validatorOf(t *testing.T, schema []byte) validation.SchemaValidator {
	t.Helper()
	internal, err := oracle.Internal(schema)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// run generates objects from both schemas and returns how many the old one accepts.
func (j *fixValidators) run(t *testing.T, old, fixed []byte, objects int) (accepted int) {
	t.Helper()
	for _, schema := range [][]byte{old, fixed} {
		plan, err := generate.Compile(schema)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range objects / 2 {
			o := generate.Options{Mode: generate.Valid, Resolve: true, Compact: true, Size: 300 + 10*(seed%30)}
			if seed%3 == 2 {
				o.Mode = generate.Breach
			}
			object := plan.Append(nil, uint64(seed), o)
			if j.validate(t, object, fixed) {
				accepted++
			}
			if t.Failed() {
				return accepted
			}
		}
	}
	return accepted
}

// validate reports whether the old schema accepts an object, and fails if the new one then does not.
func (j *fixValidators) validate(t *testing.T, object, fixed []byte) bool {
	t.Helper()
	obj, err := oracle.Decode(object)
	if err != nil {
		return false
	}
	if j.assumed != nil && len(validation.ValidateCustomResource(nil, obj, j.assumed)) > 0 {
		return false
	}
	if len(validation.ValidateCustomResource(nil, obj, j.before)) > 0 {
		return false
	}
	valid := func(s *espalier.Schema) bool {
		v, err := s.Validate(object, espalier.ValidateOptions{})
		return err == nil && v.Valid()
	}
	// Servers drop nulls from fields that are not nullable before they validate.
	normal := j.pruner.Normalize(object, oracle.Request)
	if j.was != nil && valid(j.was) && !valid(j.is) {
		if v, err := j.is.Validate(normal.Bytes, espalier.ValidateOptions{}); err != nil || !v.Valid() {
			t.Errorf("the engine no longer accepts %s\n%v\n%s", object, v.Err(), fixed)
		}
	}
	if normal.Err != nil {
		return true // metadata that upstream refuses in any case
	}
	pruned, err := oracle.Decode(normal.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidateCustomResource(nil, obj, j.after); len(errs) > 0 && len(validation.ValidateCustomResource(nil, pruned, j.after)) > 0 {
		t.Errorf("upstream no longer accepts %s\n%v\n%s", object, errs, fixed)
	}
	if lost := lostField([]*tree.Node{j.mentioned}, obj, pruned, ""); lost != "" {
		t.Errorf("%s was mentioned, and is pruned from %s\n%s", lost, object, fixed)
	}
	return true
}

// lostField returns the path of a field that is no longer there although one of the schemas mentions it.
func lostField(schemas []*tree.Node, before, after any, path string) string {
	schemas = withBranches(schemas)
	switch x := before.(type) {
	case map[string]any:
		y, ok := after.(map[string]any)
		if !ok {
			return path
		}
		isResource := path == "" || slices.ContainsFunc(schemas, func(s *tree.Node) bool { return s.Get("x-kubernetes-embedded-resource").Is("true") })
		for key, value := range x {
			if isResource && slices.Contains([]string{"metadata", "apiVersion", "kind"}, key) || value == nil {
				continue // metadata has its own rules, and nulls are dropped
			}
			var below []*tree.Node
			named := false
			for _, s := range schemas {
				if p := s.Get("properties").Get(key); p != nil {
					below, named = append(below, p), true
				}
				if more := s.Get("additionalProperties"); more != nil && more.Kind == tree.Object {
					below, named = append(below, more), true
				}
			}
			if !named {
				continue
			}
			kept, there := y[key]
			if !there {
				return path + "." + key
			}
			if lost := lostField(below, value, kept, path+"."+key); lost != "" {
				return lost
			}
		}
	case []any:
		y, ok := after.([]any)
		if !ok || len(x) != len(y) {
			return path
		}
		var below []*tree.Node
		for _, s := range schemas {
			if items := s.Get("items"); items != nil && items.Kind == tree.Object {
				below = append(below, items)
			}
		}
		for i := range x {
			if lost := lostField(below, x[i], y[i], fmt.Sprintf("%s[%d]", path, i)); lost != "" {
				return lost
			}
		}
	}
	return ""
}

// withBranches adds the branches of allOf, anyOf, oneOf and not.
func withBranches(schemas []*tree.Node) []*tree.Node {
	for i := 0; i < len(schemas); i++ {
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			if list := schemas[i].Get(keyword); list != nil {
				schemas = append(schemas, list.Kids...)
			}
		}
		if not := schemas[i].Get("not"); not != nil {
			schemas = append(schemas, not)
		}
	}
	return schemas
}
