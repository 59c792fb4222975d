package evidence

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		keyword, name, schema string
		least, most           uint64
		known                 bool
		why                   string
	}{
		{"maxLength", "x", `{"type":"string"}`, 256, 4096, false, "nothing"},
		{"maxLength", "roleARN", `{"type":"string"}`, 2048, 2048, true, "ARNs"},
		{"maxLength", "targetARNs", `{"type":"string"}`, 2048, 2048, true, "ARNs"},
		{"maxLength", "bucket", `{"type":"string","description":"The ARN of a bucket."}`, 2048, 2048, true, "ARNs"},
		{"maxLength", "callbackUrl", `{"type":"string"}`, 2048, 8192, true, "URLs"},
		{"maxLength", "serviceName", `{"type":"string"}`, 253, 253, true, "names of objects"},
		{"maxLength", "hosts", `{"type":"string"}`, 253, 253, true, "DNS"},
		{"maxLength", "addresses", `{"type":"string"}`, 253, 253, true, "IP"},
		{"maxLength", "caBundle", `{"type":"string"}`, 256 << 10, 1 << 20, true, "content"},
		{"maxLength", "x", `{"type":"string","format":"byte"}`, 256 << 10, 1 << 20, true, "content"},
		{"maxLength", "x", `{"type":"string","format":"ipv4"}`, 15, 15, true, "IPv4"},
		{"maxLength", "x", `{"type":"string","format":"uri"}`, 2048, 8192, true, "URLs"},
		{"maxLength", "arn", `{"type":"string","pattern":"^[a-z]{3,9}(-x)?$"}`, 11, 11, true, "pattern"},
		{"maxLength", "arn", `{"type":"string","pattern":"^(?:a|bc)$|^d{3}$"}`, 3, 3, true, "pattern"},
		{"maxLength", "arn", `{"type":"string","pattern":"^[a-z]+$"}`, 2048, 2048, true, "ARNs"},
		{"maxLength", "arn", `{"type":"string","pattern":"[a-z]{3}"}`, 2048, 2048, true, "ARNs"},
		{"maxLength", "arn", `{"type":"string","pattern":"^a$|b"}`, 2048, 2048, true, "ARNs"},
		{"maxLength", "arn", `{"type":"string","description":"Must be at most 1,600 characters."}`, 1600, 1600, true, "states a limit of 1600"},
		{"maxLength", "x", `{"type":"string","description":"Between 3 and 63 lowercase characters. Not to be confused with the first 8 characters, up to 9 characters."}`, 63, 63, true, "states"},
		{"maxLength", "x", `{"type":"string","description":"Names with dots. Each name is between 1 and 63 characters long. There are at most 16 names."}`, 256, 4096, false, "nothing"},
		{"maxItems", "x", `{"type":"array","description":"The list may contain at most 64 fields. It is read up to 5 times.","items":{"type":"string"}}`, 64, 64, true, "limit of 64"},
		{"maxItems", "x", `{"type":"array","description":"What to wait for, up to 30 seconds.","items":{"type":"string"}}`, 32, 1024, false, "nothing"},
		{"maxLength", "x", `{"type":"string","default":"` + strings.Repeat("é", 300) + `"}`, 300, 4096, true, "the default has 300"},
		{"maxLength", "x", `{"type":"string","example":"` + strings.Repeat("x", 5000) + `"}`, 5000, 5000, true, "the example has 5000"},
		{"maxLength", "x", `{"type":"string","minLength":400}`, 400, 4096, true, "lower bound"},
		{"maxItems", "x", `{"type":"array","items":{"type":"string"}}`, 32, 1024, false, "nothing"},
		{"maxItems", "x", `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","enum":["a","b"]}}`, 2, 2, true, "enum has 2"},
		{"maxItems", "x", `{"type":"array","items":{"type":"string","enum":["a","b"]}}`, 32, 1024, false, "nothing"},
		{"maxItems", "x", `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["t"],"items":{"type":"object","properties":{"t":{"type":"string","enum":["a","b","c"]}}}}`, 3, 3, true, "enum has 3"},
		{"maxItems", "x", `{"type":"array","description":"Up to 16 entries.","items":{"type":"string"}}`, 16, 16, true, "limit of 16"},
		{"maxItems", "x", `{"type":"array","minItems":50,"items":{"type":"string"}}`, 50, 1024, true, "lower bound"},
		{"maxProperties", "x", `{"type":"object","default":{"a":"b"},"additionalProperties":{"type":"string"}}`, 64, 1024, false, "nothing"},
	} {
		d, err := jsondoc.Parse([]byte(c.schema), jsondoc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := syntax.Parse(d, jsondoc.Root)
		got := Of(c.keyword, c.name, s)
		if got.Least != c.least || got.Most != c.most || got.Known != c.known || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s of %s %s: %+v", c.keyword, c.name, c.schema, got)
		}
		d.Release()
	}
}
