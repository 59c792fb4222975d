package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
)

// A CRD that preserves unknown fields since v1beta1 may keep a schema that is not structural,
// as long as it uses nothing that only structural schemas may have.
func TestNonStructuralUpdates(t *testing.T) {
	legacy := func(schema string) string {
		return edited(`"scope"`, `"preserveUnknownFields":true,"scope"`, `{"type":"object","properties":{"spec"`, schema[:len(schema)-1]+`,"properties":{"spec"`)
	}
	const loose = `{"anyOf":[{"type":"object"}]}` // no type at the root
	preserving, structural := legacy(loose), legacy(`{"type":"object"}`)
	withSecond := func(doc string) string {
		return strings.Replace(doc, `}]}}`, `},{"name":"v2","schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, 1)
	}
	for _, c := range []struct{ name, old, now, want string }{
		{"created", "", preserving, "junctor-type preserve-unknown-fields type-required"},
		{"as before", preserving, preserving, ""},
		{"as before, the first of two", withSecond(preserving), withSecond(preserving), ""},
		{"structural before", structural, preserving, "junctor-type type-required"},
		{"no longer preserving", preserving, strings.Replace(preserving, `"preserveUnknownFields":true,`, "", 1), "junctor-type type-required"},
		{"preserving again", tree, structural, "preserve-unknown-fields"},
		{"default", preserving, strings.Replace(preserving, `"integer"`, `"integer","default":1`, 1), "junctor-type preserve-with-defaults type-required"},
		{"embedded", preserving, strings.Replace(preserving, `{"spec":{`, `{"spec":{"x-kubernetes-embedded-resource":true,`, 1), "junctor-type type-required"},
		{"preserve", preserving, strings.Replace(preserving, `{"spec":{`, `{"spec":{"x-kubernetes-preserve-unknown-fields":true,`, 1), "junctor-type type-required"},
		{"int or string", preserving, strings.Replace(preserving, `"age":{"type":"integer"}`, `"age":{"x-kubernetes-int-or-string":true}`, 1), "junctor-type type-required"},
		{"rules", preserving, strings.Replace(preserving, `{"spec":{`, `{"spec":{"x-kubernetes-validations":[{"rule":"true"}],`, 1), "junctor-type type-required"},
		{"default in the first version of two", preserving, strings.NewReplacer(`"integer"`, `"integer","default":1`, `}]}}`, `},{"name":"v2","schema":{"openAPIV3Schema":{"type":"object"}}}]}}`).Replace(preserving), "junctor-type preserve-with-defaults type-required"},
		{"webhook", preserving, strings.Replace(preserving, `"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://h"},"conversionReviewVersions":["v1"]}},"scope"`, 1), "conversion-preserve"},
		{"list keys", preserving, strings.Replace(preserving, `"age":{"type":"integer"}`, `"age":{"type":"array","items":{"type":"string"},"x-kubernetes-list-map-keys":["a"]}`, 1), "junctor-type list-map-keys-without-map type-required"},
		{"list type", preserving, strings.Replace(preserving, `"age":{"type":"integer"}`, `"age":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, 1), "junctor-type type-required"},
	} {
		if got := checksOf(t, c.now, c.old); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// Versions without a schema: only an update of a CRD that had such a version may keep them,
// and then only those that are not served.
func TestSchemasRequired(t *testing.T) {
	start := strings.Index(tree, `,"schema"`)
	bare := tree[:start] + "}]}}"
	unserved := strings.Replace(bare, `"served":true`, `"served":false`, 1)
	preserving := func(doc string) string {
		return strings.Replace(doc, `"scope"`, `"preserveUnknownFields":true,"scope"`, 1)
	}
	two := func(first, second bool) string {
		const schema = `,"schema":{"openAPIV3Schema":{"type":"object"}}`
		parts := map[bool]string{true: schema}
		return tree[:start] + parts[first] + `},{"name":"v2","served":true,"storage":false` + parts[second] + `}]}}`
	}
	const missing, pruned = "FieldValueRequired", "FieldValueRequired because otherwise all fields are pruned"
	at := func(i int) string { return fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema ", i) }
	for _, c := range []struct{ name, old, now, want string }{
		{"created", "", bare, at(0) + missing},
		{"after one with a schema", tree, bare, at(0) + missing},
		{"after one without", bare, bare, at(0) + pruned},
		{"and not served", bare, unserved, ""},
		{"and not served, created", "", unserved, at(0) + missing},
		{"preserving before", preserving(bare), preserving(bare), ""},
		{"preserving, with a schema before", preserving(tree), preserving(bare), at(0) + missing},
		{"second of two", "", two(true, false), at(1) + missing},
		{"first of two", "", two(false, true), at(0) + missing},
		{"both", "", two(true, true), ""},
		{"second of two, as before", two(true, false), two(true, false), at(1) + pruned},
		{"second of two, the first before", two(false, true), two(true, false), at(1) + pruned},
		{"second of two, none before", two(true, true), two(true, false), at(1) + missing},
	} {
		var old []string
		if c.old != "" {
			old = append(old, c.old)
		}
		if got := details(t, c.now, crd.ValidateOptions{}, old...); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// A rule that may cost too much by itself is tolerated where the schema of the version stays as
// it is. The sum of a schema is not.
func TestUnchangedSchemas(t *testing.T) {
	const costly = `"f":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, self.all(z, x == y || y == z)))"}]},`
	version := func(name, property string) string {
		return `{"name":"` + name + `","served":true,"storage":` + fmt.Sprint(name == "v1") + `,"schema":{"openAPIV3Schema":{"type":"object","properties":{` + property + `"a":{"type":"string"}}}}}`
	}
	start := strings.Index(tree, `{"name":"v1"`)
	doc := func(versions ...string) string { return tree[:start] + strings.Join(versions, ",") + "]}}" }
	one, two := version("v1", costly), version("v2", costly)
	plain, other := version("v1", ""), version("v1", costly+`"b":{"type":"string"},`)
	for _, c := range []struct {
		name, old, now string
		versions       []string // with an error
	}{
		{"created", "", doc(one), []string{"validation"}},
		{"as before", doc(one), doc(one), nil},
		{"with spaces", doc(one), doc(strings.ReplaceAll(one, `":`, `" : `)), nil},
		{"with another field", doc(one), doc(other), []string{"validation"}},
		{"new", doc(plain), doc(one), []string{"validation"}},
		// Where all versions share one, servers find it under any name.
		{"after no versions", doc(), doc(one), []string{"validation"}},
		// Servers find the first version of the name, which has no schema, as before.
		{"after no versions, with two of the same name", doc(), doc(`{"name":"v1","served":true,"storage":true}`, one), nil},
		{"in a third version, after one without", doc(plain, two), doc(plain, two, `{"name":"v3"}`, version("v3", costly)), []string{"versions[3]"}},
		{"in a version before it", doc(one), doc(two, one), nil},
		{"in a second version", doc(one), doc(one, two), nil},
		{"in one version of two", doc(plain, two), doc(plain, two), nil},
		{"in the other version", doc(plain, two), doc(one, version("v2", "")), []string{"versions[0]"}},
		{"in a third version", doc(plain, two), doc(plain, two, version("v3", costly)), []string{"versions[2]"}},
	} {
		var old [][]byte
		if c.old != "" {
			old = append(old, []byte(c.old))
		}
		found, err := validate([]byte(c.now), crd.ValidateOptions{}, old...)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, f := range found {
			if strings.HasPrefix(f.Detail, "estimated rule cost exceeds budget") {
				place, _, _ := strings.Cut(strings.TrimPrefix(f.Path, "spec."), ".")
				seen[place] = true
			}
		}
		for _, v := range c.versions {
			if !seen[v] {
				t.Errorf("%s: nothing is found in %s: %v", c.name, v, found)
			}
		}
		if len(seen) != len(c.versions) {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

// What an update must not change, and what the server fills in.
func TestStoredMetadata(t *testing.T) {
	stored := edited(`"metadata":{`, `"metadata":{"uid":"u","generation":4,"resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-02-02T03:04:05Z","deletionGracePeriodSeconds":30,`)
	for _, c := range []struct{ now, want string }{
		{tree, ""},
		{edited(`"metadata":{`, `"metadata":{"uid":"u","generation":9,"creationTimestamp":"2025-01-02T03:04:05Z",`), ""},
		{edited(`"metadata":{`, `"metadata":{"deletionGracePeriodSeconds":30,`), ""},
		{edited(`"metadata":{`, `"metadata":{"deletionGracePeriodSeconds":9,`), "metadata.deletionGracePeriodSeconds FieldValueInvalid field is immutable"},
		{edited(`"metadata":{`, `"metadata":{"deletionTimestamp":"2020-01-02T03:04:05Z",`), ""},
		{edited(`"metadata":{`, `"metadata":{"uid":"other",`), "metadata.uid FieldValueInvalid field is immutable"},
		{edited(`"metadata":{`, `"metadata":{"labels":{"ok":"ok","no":"?"},`), "metadata.labels FieldValueInvalid a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
	} {
		if got := details(t, c.now, crd.ValidateOptions{}, stored); got != c.want {
			t.Errorf("%.120s:\n%s\nnot\n%s", c.now, got, c.want)
		}
	}
	if got := details(t, strings.Replace(stored, `"generation":4`, `"generation":-1`, 1), crd.ValidateOptions{Verbatim: true}); !strings.HasPrefix(got, "metadata.generation FieldValueInvalid must be greater than or equal to") {
		t.Error(got)
	}
	// The server counts generations itself.
	if got := details(t, edited(`"metadata":{`, `"metadata":{"generation":-1,`), crd.ValidateOptions{}); got != "" {
		t.Error(got)
	}
	// Approval by the Kubernetes project.
	approved := func(group, value string) string {
		return edited(`"group":"orchard.example"`, `"group":"`+group+`"`, `"trees.orchard.example"`, `"trees.`+group+`","annotations":{"api-approved.kubernetes.io":"`+value+`"}`)
	}
	const must = `metadata.annotations[api-approved.kubernetes.io] FieldValueInvalid protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`
	const missing = `metadata.annotations[api-approved.kubernetes.io] FieldValueRequired protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`
	for _, c := range []struct{ now, old, want string }{
		{approved("x.k8s.io", ""), "", missing},
		{approved("x.k8s.io", "https://github.com/pull/1"), "", ""},
		{approved("x.k8s.io", "unapproved, it is an experiment"), "", ""},
		{approved("x.k8s.io", "yes"), "", must},
		{approved("x.k8s.io", "/path"), "", must},
		{approved("k8s.io", "yes"), "", must},
		{approved("kubernetes.io", "yes"), "", must},
		{approved("x.kubernetes.io", "yes"), "", must},
		{approved("xk8s.io", "yes"), "", ""},
		{approved("x.k8s.io", "yes"), approved("x.k8s.io", "no"), ""},
		{approved("x.k8s.io", "yes"), approved("x.k8s.io", "unapproved"), must},
	} {
		var old []string
		if c.old != "" {
			old = append(old, c.old)
		}
		if got := details(t, c.now, crd.ValidateOptions{}, old...); got != c.want {
			t.Errorf("%.200s:\n%s\nnot\n%s", c.now, got, c.want)
		}
	}
}

// The versions that objects may be stored in. The texts are those of servers.
func TestStoredVersions(t *testing.T) {
	const gone = "missing from spec.versions; v0 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v0 and removes v0 from status.storedVersions"
	status := func(text string) string { return edited(`]}}`, `]},"status":`+text+`}`) }
	for _, c := range []struct{ doc, want string }{
		{status(`{"storedVersions":["v1"]}`), ""},
		{status(`{"storedVersions":["v0"]}`), `status.storedVersions: Invalid value: ["v0"]: must have the storage version v1` + "\n" + `status.storedVersions[0]: Invalid value: "v0": ` + gone},
		{status(`{"storedVersions":["v1","v0"]}`), `status.storedVersions[1]: Invalid value: "v0": ` + gone},
		{status(`{}`), ""}, // the server adds the storage version
		{strings.Replace(status(`{"storedVersions":[]}`), `"storage":true`, `"storage":false`, 1), `status.storedVersions: Invalid value: []: must have at least one stored version`},
		{strings.Replace(status(`{}`), `"storage":true`, `"storage":false`, 1), `status.storedVersions: Invalid value: null: must have at least one stored version`},
		{status(`{"storedVersions":["v1"],"acceptedNames":{"categories":["?"]}}`), "status.acceptedNames.categories[0]"},
		{status(`{"storedVersions":["v1"],"acceptedNames":{"singular":"?"}}`), "status.acceptedNames.singular"},
		{status(`{"storedVersions":["v1"],"acceptedNames":{"kind":"A","listKind":"A"}}`), "status.acceptedNames.listKind: Invalid value: \"A\": kind and listKind may not be the same"},
	} {
		found, err := validate([]byte(c.doc), crd.ValidateOptions{Verbatim: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			if strings.HasPrefix(f.Path, "status.") {
				got = append(got, f.Error())
			}
		}
		if text := strings.Join(got, "\n"); !strings.HasPrefix(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s:\n%s\nnot\n%s", c.doc, text, c.want)
		}
	}
}

// Servers show the versions as they have decoded them: null if there is no list.
func TestVersionsAsBadValue(t *testing.T) {
	start, end := strings.Index(tree, `,"versions"`), strings.LastIndex(tree, `}}`)
	const one = `[{"name":"v1","served":true,"storage":false,"deprecated":true,"deprecationWarning":"old","schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}},"additionalPrinterColumns":[],"selectableFields":[]}`
	const bare = `{"name":"v1","served":true,"storage":false`
	const decoded = `{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,`
	for versions, want := range map[string]string{
		``: `null`,
		// What all versions have in common is not shown.
		`,"versions":[` + bare + `},` + bare + `,"schema":{},"subresources":{},"additionalPrinterColumns":[{"name":"A","type":"date","jsonPath":".a"}],"selectableFields":[{"jsonPath":".a"}]}]`: `[` +
			decoded + `"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},` +
			decoded + `"Schema":{"OpenAPIV3Schema":null},"Subresources":{"Status":null,"Scale":null},"AdditionalPrinterColumns":[{"Name":"A","Type":"date","Format":"","Description":"","Priority":0,"JSONPath":".a"}],"SelectableFields":[{"JSONPath":".a"}]}]`,
		`,"versions":[` + bare + `,"subresources":{"status":{}},"additionalPrinterColumns":[{}],"selectableFields":[{}]},` + bare + `,"schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a"}},"additionalPrinterColumns":[],"selectableFields":[]}]`: `[` +
			decoded + `"Schema":null,"Subresources":{"Status":{},"Scale":null},"AdditionalPrinterColumns":[{"Name":"","Type":"","Format":"","Description":"","Priority":0,"JSONPath":""}],"SelectableFields":[{"JSONPath":""}]},` +
			decoded + `"Schema":{"OpenAPIV3Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}},` +
			`"Subresources":{"Status":null,"Scale":{"SpecReplicasPath":".spec.a","StatusReplicasPath":".status.a","LabelSelectorPath":null}},"AdditionalPrinterColumns":[],"SelectableFields":[]}]`,
		`,"versions":[]`:           `[]`,
		`,"versions":null`:         `null`,
		`,"versions":` + one + `]`: `[{"Name":"v1","Served":true,"Storage":false,"Deprecated":true,"DeprecationWarning":"old","Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]`,
	} {
		found, err := validate([]byte(tree[:start]+versions+tree[end:]), crd.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range found {
			if f.Check == "versions-storage" {
				got = f.Error()
			}
		}
		if got != "spec.versions: Invalid value: "+want+": must have exactly one version marked as storage version" {
			t.Errorf("%s: %s", versions, got)
		}
	}
}

// Where findings are left out, a finding says so.
func TestTooManyFindings(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	names := func(n int) (list string) {
		for i := range n {
			list += fmt.Sprintf(`"%d%s":1,`, i, long)
		}
		return list
	}
	var owners []string
	for i := range 201 {
		owners = append(owners, fmt.Sprintf(`{"apiVersion":"v1","kind":"A","name":"a","uid":"%d"}`, i))
	}
	// Findings that show a list show all of it: each storage version, and each controller.
	var controllers, stores []string
	word := strings.Repeat("x", 81)
	for i := range 200 {
		controllers = append(controllers, fmt.Sprintf(`{"apiVersion":"%[1]s","kind":"%[1]s","name":"%[1]s%[2]d","uid":"%[1]s","controller":true}`, word, i))
	}
	for i := range 2400 {
		stores = append(stores, fmt.Sprintf(`{"name":"v%d","storage":true}`, i))
	}
	empty := strings.TrimSuffix(strings.Repeat(`"",`, 2400), ",")
	start := strings.Index(tree, `{"name":"v1"`)
	columns := strings.TrimSuffix(strings.Repeat(`{"name":"A","jsonPath":".a","type":"`+long+`"},`, 20), ",")
	// A finding about a stored version names it four times.
	gone := func(n int) string { return strings.ReplaceAll(names(n), ":1", "") + `"v1"` }
	// A list of versions is shown with the selectable fields of each.
	fields := `"storage":true,"selectableFields":[` + strings.TrimSuffix(strings.Repeat("{},", 50_000), ",") + `]`
	const another = `,{"name":"v2","storage":true,"served":true,"schema":{"openAPIV3Schema":{"type":"object"}}}`
	for name, c := range map[string]struct {
		doc, old string
		many     bool
	}{
		"warnings":        {edited(`"scope"`, names(9)+`"scope"`), "", true},
		"few warnings":    {edited(`"scope"`, names(3)+`"scope"`), "", false},
		"errors":          {edited(`"storage":true`, `"storage":true,"additionalPrinterColumns":[`+columns+`]`), "", true},
		"versions":        {edited(`"storage":true`, fields, `]}}`, another+`]}}`), "", true},
		"few versions":    {edited(`"storage":true`, fields, `]}}`, strings.Replace(another, "true", "false", 1)+`]}}`), "", false},
		"stored":          {edited(`]}}`, `]},"status":{"storedVersions":[`+gone(6)+`]}}`), "", true},
		"few stored":      {edited(`]}}`, `]},"status":{"storedVersions":[`+gone(3)+`]}}`), "", false},
		"owners":          {edited(`"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Join(owners, ",")+`],`), "", true},
		"few owners":      {edited(`"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Join(owners[1:], ",")+`],`), "", false},
		"owners before":   {tree, edited(`"metadata":{`, `"metadata":{"resourceVersion":"1","ownerReferences":[`+strings.Join(owners, ",")+`],`), true},
		"managers":        {edited(`"metadata":{`, `"metadata":{"managedFields":[`+strings.Repeat(`{"operation":"Apply","fieldsType":"FieldsV1"},`, 200)+`{}],`), "", true},
		"few managers":    {edited(`"metadata":{`, `"metadata":{"managedFields":[`+strings.Repeat(`{"operation":"Apply","fieldsType":"FieldsV1"},`, 199)+`{}],`), "", false},
		"controllers":     {edited(`"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Join(controllers, ",")+`],`), "", true},
		"few controllers": {edited(`"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Join(controllers[100:], ",")+`],`), "", false},
		"stores":          {tree[:start] + strings.Join(stores, ",") + `]},"status":{"storedVersions":[` + empty + `]}}`, "", true},
	} {
		var old [][]byte
		if c.old != "" {
			old = append(old, []byte(c.old))
		}
		found, err := validate([]byte(c.doc), crd.ValidateOptions{Verbatim: true}, old...)
		if err != nil {
			t.Fatal(err)
		}
		many := false
		for _, f := range found {
			many = many || f.Check == "too-many-findings" && f.Severity == finding.Warning
		}
		if many != c.many {
			t.Errorf("%s: %d findings, and it is %t that there are too many", name, len(found), many)
		}
	}
}

// null stands for nothing, and members of the wrong type are ignored.
func TestParseNull(t *testing.T) {
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{"a":"b","c":1}},
		"spec":{"names":{"shortNames":["a",null]},"preserveUnknownFields":null,"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":1,"service":null,"caBundle":null}}},
		"versions":[{"name":"v1","deprecationWarning":null,"schema":{"openAPIV3Schema":null},"subresources":{"status":null,"scale":null},
			"additionalPrinterColumns":[{"JSONPath":".a","priority":"1"}]},{"name":"v2","schema":null,"subresources":null}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	w, v := d.Conversion.Webhook, d.Version("v1")
	if w == nil || w.URL != nil || w.Service != nil || w.CABundle != nil || d.PreserveUnknownFields || len(d.Annotations) != 1 || fmt.Sprintf("%q", d.ShortNames) != `["a" ""]` {
		t.Errorf("%+v %+v %q", w, d.Annotations, d.ShortNames)
	}
	if v.DeprecationWarning != nil || v.Schema != nil || v.Status || v.Scale != nil || v.Columns[0].JSONPath != "" || v.Columns[0].Priority != 0 {
		t.Errorf("%+v", v)
	}
	d, err = crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"}`))
	if err != nil || d.Conversion.Strategy != "None" || d.ListKind != "" || d.Decodable() != nil {
		t.Error(d, err)
	}
	if _, err := crd.ParseWithin([]byte(tree), espalier.Limits{MaxBytes: 10}); err == nil {
		t.Error("a CRD beyond the limit is read")
	}
}
