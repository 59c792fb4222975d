package espalier_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
)

// The violations of one value have the order of API servers: type, logical keywords, strings, formats, numbers, arrays,
// enum, objects.
func TestOrderOfViolations(t *testing.T) {
	for _, tt := range []struct{ schema, value, want string }{
		{`{"type":"string","enum":["a"],"anyOf":[{"maxLength":1}]}`, `7`, "type enum"},
		{`{"type":"string","maxLength":1,"format":"ipv4","enum":["a"]}`, `"bc"`, "maxLength format enum"},
		{`{"type":"integer","multipleOf":3,"minimum":9,"maximum":1,"enum":[0]}`, `5`, "multipleOf minimum maximum enum"},
		{`{"type":"integer","format":"int32","maximum":9,"minimum":3000000000}`, `3000000000`, "format minimum maximum"},
		{`{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":0,"enum":[[]]}`, `[1]`, "type minItems maxItems enum"},
		{`{"type":"object","minProperties":2,"maxProperties":0,"required":["b"],"properties":{"a":{"type":"string"}},"enum":[{}]}`, `{"a":1}`,
			"enum minProperties maxProperties type required"},
		{`{"type":"string","not":{"minLength":1},"allOf":[{"maxLength":0}],"oneOf":[{"pattern":"x"}],"anyOf":[{"format":"ipv4"}],"minLength":3}`, `"a"`,
			"anyOf format oneOf pattern maxLength allOf not minLength"},
	} {
		schema, err := espalier.Compile([]byte(`{"type":"object","properties":{"x":`+tt.schema+`}}`), espalier.CompileOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		got, err := schema.Validate([]byte(`{"x":`+tt.value+`}`), espalier.ValidateOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		var keywords []string
		for _, v := range got.Errors {
			keywords = append(keywords, v.Keyword)
		}
		if have := strings.Join(keywords, " "); have != tt.want {
			t.Errorf("%s of %s: violations of %s, want %s:\n%s", tt.value, tt.schema, have, tt.want, errorTexts(got.Errors))
		}
	}
}
