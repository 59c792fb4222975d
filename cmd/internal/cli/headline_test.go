package cli

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
)

func TestHeadline(t *testing.T) {
	const schema = "/spec/versions/0/schema/openAPIV3Schema"
	for _, c := range []struct {
		pointer string
		f       finding.Finding
		want    string
	}{
		{"/spec/names/plural", finding.Finding{Type: field.ErrorTypeRequired}, "spec.names.plural: required"},
		{"", finding.Finding{Detail: "is long"}, "is long"},
		{schema, finding.Finding{Detail: "is long"}, "is long"},
		{schema + "/properties/spec/properties/a~1b/maxLenght", finding.Finding{Type: field.ErrorTypeForbidden, Detail: "unknown keyword"}, "spec.a/b maxLenght: unknown keyword"},
		{schema + "/properties/properties/items/properties/x", finding.Finding{Detail: "d"}, "properties[].x: d"},
		{schema + "/properties/a/additionalProperties/type", finding.Finding{Type: field.ErrorTypeNotSupported, BadValue: "objekt", Detail: `supported values: "object"`}, `a[*] type: unsupported value "objekt": supported values: "object"`},
		{schema + "/properties/a/x-kubernetes-validations/2/rule", finding.Finding{Detail: "long text", Summary: "undeclared reference"}, "a rule 3: undeclared reference"},
		{schema + "/properties/a/anyOf/1/properties/b", finding.Finding{Type: field.ErrorTypeDuplicate}, "a anyOf.1.properties.b: duplicate"},
		{schema + "/properties", finding.Finding{Path: "p", Type: field.ErrorTypeInvalid, BadValue: 1}, "properties: Invalid value: 1"},
		{schema + "/items", finding.Finding{Type: field.ErrorTypeTooLong, Detail: "at most 3"}, "items: too long: at most 3"},
	} {
		c.f.Pointer = c.pointer
		if got := headline(&c.f); got != c.want {
			t.Errorf("%s: %q, not %q", c.pointer, got, c.want)
		}
	}
}
