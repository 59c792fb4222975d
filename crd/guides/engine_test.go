package guides_test

import (
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/finding"
)

// The guide to the engine shows what is in this file; TestGuidesAreRun keeps them
// equal.

const crdOfWebs = `{
  "apiVersion": "apiextensions.k8s.io/v1",
  "kind": "CustomResourceDefinition",
  "metadata": {"name": "webs.example.com"},
  "spec": {
    "group": "example.com",
    "scope": "Namespaced",
    "names": {"plural": "webs", "kind": "Web"},
    "versions": [{
      "name": "v1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {
        "type": "object",
        "properties": {
          "spec": {
            "type": "object",
            "required": ["image"],
            "properties": {
              "image":    {"type": "string", "maxLength": 100},
              "replicas": {"type": "integer", "minimum": 0, "default": 1},
              "limit":    {"type": "integer", "default": 10}
            },
            "x-kubernetes-validations": [
              {"rule": "self.replicas <= self.limit", "message": "more replicas than the limit"}
            ]
          }
        }
      }}
    }]
  }
}`

// compileWebs is done once: when the program starts, or when the CRD changes.
func compileWebs() (*espalier.Schema, *espalier.Rules) {
	parsed, err := crd.Parse([]byte(crdOfWebs))
	if err != nil {
		log.Fatal(err)
	}
	schema, rules, err := parsed.Version("v1").Compile(espalier.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	return schema, rules
}

func Example_normalize() {
	schema, _ := compileWebs()
	var report espalier.Report
	result, err := schema.Normalize([]byte(`{
	  "apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "shop"},
	  "spec": {"image": "shop", "replica": 3, "limit": null}
	}`), espalier.NormalizeOptions{Report: &report})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(result.Bytes))
	for _, c := range report.Changes {
		fmt.Printf("%s %s %q\n", c.What, c.Path, c.Nearest)
	}
	// Output:
	// {"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"shop"},"spec":{"image":"shop","limit":10,"replicas":1}}
	// defaulted spec.limit ""
	// pruned spec.replica "replicas"
	// defaulted spec.replicas ""
}

func Example_validate() {
	schema, rules := compileWebs()
	validation, err := schema.Validate([]byte(`{
	  "apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "shop", "namespace": "default"},
	  "spec": {"image": "shop", "limit": 10, "replicas": 12}
	}`), espalier.ValidateOptions{Scope: espalier.Namespaced, Rules: rules})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range validation.Errors {
		fmt.Println(v.Error())
	}
	// Output:
	// spec: Invalid value: more replicas than the limit
}

func Example_change() {
	schema, _ := compileWebs()
	stored := []byte(`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"shop"},"spec":{"image":"shop","limit":10,"replicas":-1}}`)
	result, validation, err := schema.Admit([]byte(`{
	  "apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "shop"},
	  "spec": {"image": 7, "replicas": -1}
	}`), espalier.AdmitOptions{Validate: espalier.ValidateOptions{Old: stored}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Changes)
	for _, v := range validation.Errors {
		fmt.Println(v.Error())
	}
	// Output:
	// mismatched,defaulted
	// spec.image: Invalid value: "integer": spec.image in body must be of type string: "integer"
}

func Example_crd() {
	parsed, err := crd.Parse([]byte(`{
	  "apiVersion": "apiextensions.k8s.io/v1",
	  "kind": "CustomResourceDefinition",
	  "metadata": {"name": "web.example.com"},
	  "spec": {
	    "group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"},
	    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
	      "type": "object", "properties": {"spec": {"properties": {"image": {"type": "string"}}}}
	    }}}]
	  }
	}`))
	if err != nil {
		log.Fatal(err)
	}
	findings, err := crd.Validate(parsed, crd.ValidateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		fmt.Println(f.Severity, f.Check, f.Pointer)
		fmt.Println("  " + f.Error())
	}
	// Output:
	// error name-mismatch /metadata/name
	//   metadata.name: Invalid value: "web.example.com": must be spec.names.plural+"."+spec.group
	// error type-required /spec/versions/0/schema/openAPIV3Schema/properties/spec
	//   spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields
}

func Example_diff() {
	old, err := crd.Parse([]byte(crdOfWebs))
	if err != nil {
		log.Fatal(err)
	}
	// The limit is removed, and images are shorter.
	next, err := crd.Parse([]byte(`{
	  "apiVersion": "apiextensions.k8s.io/v1",
	  "kind": "CustomResourceDefinition",
	  "metadata": {"name": "webs.example.com"},
	  "spec": {
	    "group": "example.com", "scope": "Namespaced", "names": {"plural": "webs", "kind": "Web"},
	    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
	      "type": "object",
	      "properties": {"spec": {"type": "object", "required": ["image"], "properties": {
	        "image":    {"type": "string", "maxLength": 3},
	        "replicas": {"type": "integer", "minimum": 0, "default": 1}
	      }}}
	    }}}]
	  }
	}`))
	if err != nil {
		log.Fatal(err)
	}
	changes, err := diff.Compare(old, next)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range changes {
		fmt.Printf("%s: %s %s; breaks %s\n", c.Level, c.Check, c.Path, c.Breaks)
	}
	shop := []byte(`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"shop"},"spec":{"image":"shop","limit":2}}`)
	outcomes, err := diff.Objects(old, next, [][]byte{shop}, espalier.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range outcomes {
		fmt.Println(o.Name, o.Fate, o.Pruned)
	}
	// Output:
	// risky: rule-removed spec; breaks readers
	// breaking: max-length-lowered spec.image; breaks writers, stored objects
	// breaking: field-removed spec.limit; breaks writers, readers, stored objects
	// shop becomes invalid, loses fields [spec.limit]
}

func Example_fix() {
	result, err := fix.CRD([]byte(`{
	  "apiVersion": "apiextensions.k8s.io/v1beta1",
	  "kind": "CustomResourceDefinition",
	  "metadata": {"name": "webs.example.com"},
	  "spec": {
	    "group": "example.com", "scope": "Namespaced", "version": "v1", "names": {"plural": "webs", "kind": "Web"},
	    "validation": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"port": {"type": "integer"}}}}}}
	  }
	}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range result.Edits {
		fmt.Println(e.Op, e.Pointer, e.Check)
	}
	for _, n := range result.Notes {
		fmt.Println(n.Kind, n.Pointer)
	}
	parsed, err := crd.Parse(result.JSON)
	if err != nil {
		log.Fatal(err)
	}
	findings, err := crd.Validate(parsed, crd.ValidateOptions{})
	fmt.Println(len(findings), err)
	// Output:
	// set /apiVersion api-version-removed
	// insert /spec/versions api-version-removed
	// remove /spec/version api-version-removed
	// move /spec/versions/0/schema api-version-removed
	// insert /spec/versions/0/schema/openAPIV3Schema/properties/spec/type type-required
	// insert /spec/versions/0/schema/openAPIV3Schema/type root-type-object
	// insert /spec/versions/0/schema/openAPIV3Schema/x-kubernetes-preserve-unknown-fields preserve-unknown-fields
	// narrower /spec/versions/0/schema/openAPIV3Schema/properties/spec/type
	// advice /spec/versions/0/schema/openAPIV3Schema
	// 0 <nil>
}

func Example_lint() {
	parsed, err := crd.Parse([]byte(crdOfWebs))
	if err != nil {
		log.Fatal(err)
	}
	advice, err := lint.Check(parsed, lint.Options{Enable: []finding.ID{"description-missing"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range advice {
		fmt.Println(f.Severity, f.Check, f.Pointer)
	}
	// Output:
	// info description-missing /spec/versions/0/schema/openAPIV3Schema/properties/spec
	// info description-missing /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/image
	// info description-missing /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas
	// info description-missing /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/limit
}

func Example_publish() {
	parsed, err := crd.Parse([]byte(crdOfWebs))
	if err != nil {
		log.Fatal(err)
	}
	version := parsed.Version("v1")
	editors, err := openapi.JSONSchema(parsed, version, openapi.Options{Strict: true})
	if err != nil {
		log.Fatal(err)
	}
	clients, err := openapi.Document(parsed, version)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(editors) > 0, len(clients) > 0, openapi.ModelName(parsed.Group, version.Name, parsed.Kind))
	// Output:
	// true true com.example.v1.Web
}

func Example_concurrent() {
	schema, rules := compileWebs()
	var group sync.WaitGroup
	valid := make([]bool, 8)
	for i := range valid {
		group.Go(func() {
			object := fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"web-%d"},"spec":{"image":"shop","replicas":%d}}`, i, i*3)
			_, validation, err := schema.Admit(object, espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: rules}})
			valid[i] = err == nil && validation.Valid()
		})
	}
	group.Wait()
	fmt.Println(valid)
	// Output:
	// [true true true true false false false false]
}

func Example_errors() {
	schema, _ := compileWebs()
	for _, object := range []string{
		`{"spec": {"image": }}`,
		`{"metadata": {"name": ["shop"]}}`,
		`{"spec": {"image": [[[[[[[[[[1]]]]]]]]]]}}`,
	} {
		_, err := schema.Normalize([]byte(object), espalier.NormalizeOptions{Limits: espalier.Limits{MaxBytes: 1 << 20, MaxDepth: 8}})
		if syntax := new(espalier.SyntaxError); errors.As(err, &syntax) {
			fmt.Println("at byte", syntax.Offset, "-", err)
		} else if metadata := new(espalier.ObjectError); errors.As(err, &metadata) {
			fmt.Println("in", metadata.Path, "-", err)
		}
	}
	_, err := espalier.Compile([]byte(`{"type": "object", "properties": {"a": {}}}`), espalier.CompileOptions{})
	if refused := new(espalier.SchemaError); errors.As(err, &refused) {
		for _, f := range refused.Findings {
			fmt.Println(f.Check, "-", f.Error())
		}
	}
	_, err = crd.Parse([]byte(`{"kind": "ConfigMap", "apiVersion": "v1"}`))
	fmt.Println(errors.Is(err, crd.ErrNotCRD))
	// Output:
	// at byte 19 - byte 19: unexpected '}' looking for a value
	// in metadata - json: cannot unmarshal array into Go struct field ObjectMeta.name of type string
	// at byte 25 - byte 25: nested deeper than the limit of 8
	// type-required - properties[a].type: Required value: must not be empty for specified object fields
	// true
}
