package sample_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/crd/sample"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

const webs = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"webs","singular":"web","kind":"Web","listKind":"WebList"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{"spec":{"type":"object","required":["mode"],"properties":{
"mode":{"type":"string","enum":["A","B"]},"port":{"type":"integer","minimum":1,"maximum":100},"ratio":{"type":"number"},"at":{"type":"string","format":"date-time"},
"name":{"type":"string","pattern":"^[a-z]{3,5}$"},"either":{"x-kubernetes-int-or-string":true},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"none":{"type":"string","nullable":true},"labels":{"type":"object","additionalProperties":{"type":"string"},"minProperties":1},
"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"ports":{"type":"array","minItems":2,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","number"],"items":{"type":"object","required":["name","number"],
"properties":{"name":{"type":"string"},"number":{"type":"integer"},"tls":{"type":"boolean"}}}}}}}}}}]}}`

func TestObjectsAreValid(t *testing.T) {
	d, err := crd.Parse([]byte(webs))
	if err != nil {
		t.Fatal(err)
	}
	v := &d.Versions[0]
	s, err := request.Compile(v, false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := sample.New(d, v, sample.Options{Annotations: []string{"example.com/a"}})
	if err != nil {
		t.Fatal(err)
	}
	kind := request.New(d, v)
	seen, made := map[string]bool{}, 0
	for seed := range uint64(500) {
		o := g.Object(rand.New(rand.NewPCG(seed, 1)))
		for name := range o["spec"].(map[string]any) {
			seen[name] = true
		}
		text, err := jsondoc.AppendAny(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := jsondoc.AppendAny(nil, g.Object(rand.New(rand.NewPCG(seed, 1))))
		if err != nil || !bytes.Equal(text, again) {
			t.Fatalf("seed %d gives %s and %s", seed, text, again)
		}
		parsed, err := object.FromJSON(text)
		if err != nil {
			t.Fatal(err, string(text))
		}
		kept, err := s.DecodeConverted(parsed)
		if err != nil || !bytes.Equal(kept.JSON(), text) {
			t.Fatalf("%s is pruned: %v", text, err)
		}
		found, err := kind.Validate(s, kept, request.Options{})
		if err != nil || len(found.Problems) > 0 {
			t.Fatalf("%s is invalid: %v %v", text, found.ErrorList(), err)
		}
		edits := g.Edits(rand.New(rand.NewPCG(seed, 2)), o)
		made += len(edits)
		var edited any = o
		for _, e := range edits {
			edited = sample.Apply(edited, e)
		}
		if after, err := jsondoc.AppendAny(nil, o); err != nil || !bytes.Equal(text, after) {
			t.Fatalf("an edit changed the object itself: %s", after)
		}
	}
	if made < 700 {
		t.Errorf("only %d edits", made)
	}
	if len(seen) != 11 {
		t.Errorf("objects have only %d fields: %v", len(seen), seen)
	}
}
