package conformance

import (
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

// TestExtensionsInJunctors is about schemas that only v1beta1 has: in allOf, anyOf, oneOf and not, embedded resources and list types mean
// nothing to the reference's validator.
func TestExtensionsInJunctors(t *testing.T) {
	const list = `{"properties":{"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`
	const listMap = `{"properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],` +
		`"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}}`
	const resource = `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`
	for _, test := range []struct {
		branch, object string
	}{
		{resource, `{"a":1}`},
		{resource, `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`},
		{resource, `{"apiVersion":"v1","kind":"A","metadata":{"name":"A B"}}`},
		{`{"properties":{"r":` + resource + `}}`, `{"r":{"kind":1}}`},
		{`{"properties":{"r":` + resource + `}}`, `{"r":1}`},
		{`{"not":` + resource + `}`, `{"a":1}`},
		{list, `{"l":["a","a"]}`},
		{list, `{"l":["a","b"]}`},
		{list, `{"l":[1]}`},
		{listMap, `{"l":[{"k":"a"},{"k":"a"}]}`},
		{listMap, `{"l":[{"k":"a"},{}]}`},
	} {
		for _, schema := range []string{
			`{"not":` + test.branch + `}`,
			`{"allOf":[` + test.branch + `]}`,
			`{"anyOf":[` + test.branch + `,{"required":["none"]}]}`,
			`{"oneOf":[` + test.branch + `,{"type":"object"}]}`,
		} {
			obj, err := oracle.Decode([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			theirs := validation.ValidateCustomResource(nil, obj, validatorOf(t, []byte(schema)))
			s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{ValidationOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			ours, err := s.Validate([]byte(test.object), espalier.ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if ours.Valid() != (len(theirs) == 0) || len(ours.Errors) != len(theirs) {
				t.Errorf("%s with %s:\n ours %v\ntheirs %v", schema, test.object, ours.Errors, theirs)
			}
		}
	}
}
