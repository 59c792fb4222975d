package request_test

import (
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

const gadgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"},"versions":[
{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
"schema":{"openAPIV3Schema":{"type":"object","required":["spec"],"properties":{
"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5}}},
"spec":{"type":"object","maxProperties":4,"properties":{
"n":{"type":"integer","minimum":1,"maximum":9,"x-kubernetes-validations":[{"rule":"self >= oldSelf"}]},
"s":{"type":"string","pattern":"^[a-z]*$","nullable":true},"d":{"type":"string","default":"x","enum":["x","y"]},
"m":{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":9},"v":{"x-kubernetes-int-or-string":true}}}},
"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
"status":{"type":"object","properties":{"phase":{"type":"string","maxLength":3}}}},
"x-kubernetes-validations":[{"rule":"self.metadata.name != 'bad'"}]}}}]}}`

// FuzzIndexed validates objects by the index that they have from decoding, and by their JSON: the result is the
// same, whatever was done to them in between.
func FuzzIndexed(f *testing.F) {
	var resources []*request.Resource
	var schemas []*request.Schema
	for _, text := range []string{widgets, gadgets} {
		d, err := crd.Parse([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		s, err := request.Compile(d.Version("v1"), false)
		if err != nil {
			f.Fatal(err)
		}
		resources, schemas = append(resources, request.New(d, d.Version("v1"))), append(schemas, s)
	}
	body := func(kind, rest string) []byte {
		return []byte(`{"apiVersion":"example.com/v1","kind":"` + kind + `",` + rest + `}`)
	}
	for _, rest := range []string{
		`"metadata":{"name":"a"},"spec":{"n":3,"size":5}`,
		`"metadata":{"name":"bad","labels":{"a":"b c"}},"spec":{"n":10,"size":"x","odd":1},"status":{"phase":"long","replicas":-1}`,
		`"metadata":{"name":"toolong","finalizers":["x"]},"spec":{"s":"A","d":"z","m":[{"k":"a","v":1},{"k":"a"}],"any":{"x":[null]}}`,
		`"spec":{"n":1.0,"s":null,"m":[{}]},"metadata":{"generateName":"g-","creationTimestamp":null},"status":{"phase":"ok"}`,
	} {
		f.Add(body("Gadget", rest), body("Gadget", `"metadata":{"name":"a","uid":"u"},"spec":{"n":4},"status":{"phase":7}`), uint8(1))
		f.Add(body("Widget", rest), body("Widget", `"metadata":{"name":"a"},"spec":{"size":4},"status":{"phase":"x"}`), uint8(4))
		f.Add(body("Gadget", rest), []byte(nil), uint8(3))
	}
	f.Fuzz(func(t *testing.T, now, before []byte, choice uint8) {
		r, s := resources[choice&1], schemas[choice&1]
		o, _, err := s.Decode(now, nil, 0)
		if err != nil {
			return
		}
		options := request.Options{ReadOnly: choice&2 != 0}
		if choice&4 != 0 {
			options.Target = request.Status
		}
		if old, err := s.DecodeStored(before); err == nil {
			options.Old = old
			r.Update(o, old, options.Target, "default")
		} else {
			options.Target = request.Object
			r.Create(o, "default")
		}
		o.Settle()
		plain, err := object.FromJSON(o.JSON())
		if err != nil {
			t.Fatal(err)
		}
		got, err1 := r.Validate(s, o, options)
		want, err2 := r.Validate(s, plain, options)
		if (err1 == nil) != (err2 == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nby its index: %v, %v\nby its JSON:  %v, %v", o.JSON(), got, err1, want, err2)
		}
	})
}
