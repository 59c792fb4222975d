package converter

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/object"
)

// FuzzRead reads answers of hostile webhooks. Whatever is accepted is the same
// object as before, in the version asked for.
func FuzzRead(f *testing.F) {
	const frame = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"id","result":{"status":"Success"},"convertedObjects":[`
	for _, seed := range []string{
		``, `{}`, `[]`, `{"response":7}`, frame + `]}}`, frame + `7]}}`,
		frame + `{"kind":"Gadget","apiVersion":"example.com/v2","metadata":{"name":"a","uid":"u"}}]}}`,
		frame + `{"kind":"Gadget","apiVersion":"example.com/v2","metadata":{"name":"a","uid":"u","labels":{"a":"b"},"annotations":null},"z":{"b":[1.0,1e3],"a":"\u0041"},"a":null}]}}`,
		frame + `{"kind":"Gadget","kind":"Gadget","apiVersion":"example.com/v2","metadata":[],"metadata":{"name":"a","uid":"u","uid":"u"}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	original, err := object.FromJSON([]byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"labels":{"a":"b"},"name":"a","resourceVersion":"7","uid":"u"}}`))
	if err != nil {
		f.Fatal(err)
	}
	before := string(original.JSON())
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, version := range []string{"v1", "v1beta1"} {
			objs, p := read(answer, version, "id", schema.GroupVersion{Group: "example.com", Version: "v2"}, []*object.Object{original})
			if p.err != nil {
				if p.failure == "" {
					t.Errorf("an error without a kind: %v", p.err)
				}
				continue
			}
			o := objs[0]
			if o.APIVersion() != "example.com/v2" || o.Kind() != "Gadget" || o.GetName() != "a" || o.GetUID() != "u" || o.GetResourceVersion() != "7" {
				t.Errorf("%s\nbecomes %s", answer, o.JSON())
			}
			if _, err := object.FromJSON(o.JSON()); err != nil {
				t.Errorf("%s\nis %v", o.JSON(), err)
			}
		}
		if string(original.JSON()) != before {
			t.Error("the original has changed")
		}
	})
}
