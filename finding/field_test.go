package finding_test

import (
	"testing"

	"github.com/espalier-dev/espalier/finding"
)

// Fields whose names are keywords are fields.
func TestField(t *testing.T) {
	const schema = "/spec/versions/0/schema/openAPIV3Schema"
	for _, c := range []struct{ pointer, want string }{
		{"", ""},
		{"/spec/names/plural", "spec.names.plural"},
		{schema, ""},
		{schema + "/type", "type"},
		{schema + "/properties/spec/properties/hosts/items/properties/name/format", "spec.hosts[].name format"},
		{schema + "/properties/items/items/properties/itemsCount", "items[].itemsCount"},
		{schema + "/properties/properties/additionalProperties/properties/a~1b", "properties[*].a/b"},
		{schema + "/properties/spec/x-kubernetes-validations/1/rule", "spec rule 2"},
		{schema + "/properties/spec/x-kubernetes-validations", "spec x-kubernetes-validations"},
		{schema + "/x-kubernetes-validations/0/message", "rule 1"},
		{schema + "/properties/spec/anyOf/0/required", "spec anyOf.0.required"},
		{schema + "/properties", "properties"},
		{schema + "/items", "items"},
	} {
		if got := finding.Field(c.pointer); got != c.want {
			t.Errorf("%s: %q, want %q", c.pointer, got, c.want)
		}
	}
}
