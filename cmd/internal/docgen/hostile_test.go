package docgen

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
)

var (
	ownParts   = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>\n</body>`)
	tags       = regexp.MustCompile(`<[^ >]*`)
	knownTags  = regexp.MustCompile(`^</?(!doctype|html|head|meta|title|body|a|header|div|b|span|nav|input|kbd|main|section|h1|h2|p|code|ul|li|button|aside|pre|i|dl|dt|dd|small|details|summary)$`)
	quotedText = regexp.MustCompile(`"[^"]*"`)
	attributes = regexp.MustCompile(`<[^>]*\s(on\w+|style|src|srcdoc|action)\s*=`)
	addressed  = regexp.MustCompile(`href="([^"]*)"`)
)

// harmless checks that a page has no markup but its own.
func harmless(t *testing.T, page string) {
	t.Helper()
	rest := ownParts.ReplaceAllString(page, "")
	for _, tag := range tags.FindAllString(rest, -1) {
		if !knownTags.MatchString(tag) {
			t.Errorf("%q is on the page", tag)
		}
	}
	if a := attributes.FindString(quotedText.ReplaceAllString(rest, `""`)); a != "" {
		t.Errorf("%q is on the page", a)
	}
	for _, href := range addressed.FindAllStringSubmatch(rest, -1) {
		if a := href[1]; !strings.HasPrefix(a, "#") && !strings.HasPrefix(a, "http://") && !strings.HasPrefix(a, "https://") {
			t.Errorf("a link leads to %q", a)
		}
	}
}

const attack = `</code></pre></style><script>alert(1)</script><img src=x onerror="alert(1)">" onclick="alert(1)' {{.}} javascript:alert(1) [x](javascript:alert(1)) https://a/"onmouseover="alert(1)`

// TestHostile puts an attack wherever a CRD has text.
func TestHostile(t *testing.T) {
	q := quote(attack)
	schema := strings.ReplaceAll(`{"type":"object","title":Q,"description":Q,"properties":{Q:{"type":Q,"description":Q,"title":Q,"default":{Q:Q},"example":Q,"format":Q,"pattern":Q,
		"enum":[Q],"externalDocs":{"url":Q,"description":Q},"x-kubernetes-validations":[{"rule":Q,"message":Q}],"x-kubernetes-list-type":Q,"oneOf":[{"required":[Q]}],"not":{"pattern":Q}},
		"spec":{"type":"object","required":[Q],"properties":{Q:{"type":"string","enum":[Q,Q]}}}}}`, "Q", q)
	raw := strings.ReplaceAll(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":Q},"spec":{"group":Q,
		"names":{"plural":Q,"kind":Q,"listKind":Q,"singular":Q,"shortNames":[Q],"categories":[Q]},"versions":[
		{"name":Q,"deprecated":true,"deprecationWarning":Q,"additionalPrinterColumns":[{"name":Q,"type":Q,"description":Q,"jsonPath":Q}],"schema":{"openAPIV3Schema":SCHEMA}},
		{"name":"v1","served":true,"schema":{"openAPIV3Schema":SCHEMA}}]}}`, "SCHEMA", schema)
	d, err := crd.Parse([]byte(strings.ReplaceAll(raw, "Q", q)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := HTML(&b, d, Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "alert(1)") {
		t.Fatal("the attack is not on the page at all")
	}
	harmless(t, b.String())

	b.Reset()
	if err := Markdown(&b, d, Options{}); err != nil {
		t.Fatal(err)
	}
	// Outside code there is nothing that GitHub would take for HTML or for a link to a script.
	outside := regexp.MustCompile("(?s)```+yaml.*?\n```+\n|`` .*? ``|`[^`\n]*`").ReplaceAllString(b.String(), "")
	if at := regexp.MustCompile(`<(?:/?[a-zA-Z!])[^>]*>?`).FindAllString(outside, -1); len(at) > 0 {
		for _, tag := range at {
			if tag != "<br>" && !strings.HasPrefix(tag, "<http") {
				t.Errorf("%q is in the Markdown", tag)
			}
		}
	}
	if regexp.MustCompile(`[^\\]\]\(javascript`).MatchString(outside) {
		t.Error("a link to a script is in the Markdown")
	}
}

// TestTerminal checks that descriptions cannot steer a terminal.
func TestTerminal(t *testing.T) {
	d := withSchema(t, `{"properties":{"a":{"type":"string","description":"x\u001b[31m\u009b31m\u0007","default":"\u001b[0m"}}}`)
	if text := explain(t, d, "a", Options{}); strings.ContainsAny(text, "\x1b\x07\u009b") {
		t.Errorf("%q", text)
	}
}

// TestBounds checks that neither depth nor long names cost more than they are
// long.
func TestBounds(t *testing.T) {
	const depth = 2000
	name := strings.Repeat("n", 500)
	for what, schema := range map[string]string{
		"deep":   strings.Repeat(`{"type":"object","properties":{"`+name+`":`, depth) + `{}` + strings.Repeat(`}}`, depth),
		"lists":  strings.Repeat(`{"type":"array","items":`, depth) + `{}` + strings.Repeat(`}`, depth),
		"broad":  `{"properties":{"` + strings.Repeat(name, 1000) + `":{"properties":{` + strings.Repeat(`"a":{},`, 1) + fields(2000) + `}}}}`,
		"prose":  `{"description":` + quote(strings.Repeat("[` http", 20000)) + `}`,
		"labels": `{"description":` + quote(strings.Repeat("[](http://", 20000)) + `}`,
	} {
		d := withSchema(t, schema)
		limit := 40*len(schema) + 200_000
		for format, write := range map[string]func(io.Writer, *crd.CRD, Options) error{
			"HTML": HTML, "Markdown": Markdown,
			"Explain": func(w io.Writer, d *crd.CRD, _ Options) error {
				return Explain(w, d, &d.Versions[0], nil, Options{Recursive: true})
			},
		} {
			var b bytes.Buffer
			if err := write(&b, d, Options{}); err != nil {
				t.Errorf("%s, %s: %v", what, format, err)
			}
			if b.Len() > limit {
				t.Errorf("%s, %s: %d bytes from %d", what, format, b.Len(), len(schema))
			}
		}
	}
}

func fields(n int) string {
	var list []string
	for i := range n {
		list = append(list, quote("f"+strings.Repeat("x", i%7)+string(rune('a'+i%26)))+":{}")
	}
	return strings.Join(list, ",")
}

func FuzzPages(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string","description":"` + "`x` - y\\n- z https://" + `"}}}`)
	f.Add(`{"properties":{"spec":{"required":["a"],"properties":{"a":{"enum":["<script>"],"default":null}}}}}`)
	f.Add(`{"items":{"items":{"additionalProperties":{"oneOf":[{"required":["a"]}],"x-kubernetes-validations":[{"rule":"self.a==oldSelf.a"}]}}},"type":"array"}`)
	f.Add(quote(attack))
	f.Fuzz(func(t *testing.T, schema string) {
		if !json.Valid([]byte(schema)) {
			schema = quote(schema)
			schema = `{"description":` + schema + `,"properties":{` + schema + `:{"pattern":` + schema + `,"default":` + schema + `}}}`
		}
		d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":` + schema + `}}]}}`))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := HTML(&b, d, Options{}); err != nil {
			t.Error(err)
		}
		harmless(t, b.String())
		if err := Markdown(io.Discard, d, Options{}); err != nil {
			t.Error(err)
		}
		for _, recursive := range []bool{false, true} {
			if err := Explain(io.Discard, d, &d.Versions[0], nil, Options{Recursive: recursive}); err != nil {
				t.Error(err)
			}
		}
	})
}
