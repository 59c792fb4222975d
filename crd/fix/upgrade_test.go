package fix_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/fix"
)

// An edit at /versions/1 says nothing of what is at /versions/10.
func TestOrigin(t *testing.T) {
	r := fix.Result{Edits: []fix.Edit{
		{Op: fix.Copy, From: "/spec/first", Pointer: "/spec/versions/1"},
		{Op: fix.Move, From: "/spec/a", Pointer: "/spec/b"},
		{Op: fix.Move, From: "/spec/b", Pointer: "/spec/c"},
		{Op: fix.Insert, From: "/spec/a", Pointer: "/spec/d"},
	}}
	for _, c := range []struct {
		pointer string
		edits   int
		want    string
	}{
		{"/spec/versions/1", 4, "/spec/first"},
		{"/spec/versions/1/schema", 4, "/spec/first/schema"},
		{"/spec/versions/10", 4, "/spec/versions/10"},
		{"/spec/versions/10/schema", 4, "/spec/versions/10/schema"},
		{"/spec/versions/1", 0, "/spec/versions/1"},
		{"/spec/c", 4, "/spec/a"}, // moved twice
		{"/spec/c", 3, "/spec/a"},
		{"/spec/c", 2, "/spec/c"},
		{"/spec/c", 9, "/spec/a"},
		{"/spec/d", 4, "/spec/d"}, // new
	} {
		if got := r.Origin(c.pointer, c.edits); got != c.want {
			t.Errorf("%s after %d edits: %s, not %s", c.pointer, c.edits, got, c.want)
		}
	}
}

// Of eleven versions, one has a schema that cannot be fixed: the note leads to it, in the
// CRD as it was given.
func TestManyVersions(t *testing.T) {
	for bad := range 11 {
		var versions []string
		for i := range 11 {
			schema := `{"type":"object"}`
			if i == bad {
				schema = `{"type":"object","properties":{"a":{"type":"text"}}}`
			}
			versions = append(versions, fmt.Sprintf(`{"name":"v%d","schema":{"openAPIV3Schema":%s},"additionalPrinterColumns":[{"JSONPath":".a"}]}`, i, schema))
		}
		document := []byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","spec":{"versions":[` + strings.Join(versions, ",") + `]}}`)
		r, err := fix.CRD(document)
		if err != nil {
			t.Fatal(err)
		}
		check(t, document, r)
		want := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/properties/a/type", bad)
		if r.Changed || len(r.Notes) != 1 || r.Notes[0].Pointer != want || r.Notes[0].Kind != fix.Cannot {
			t.Errorf("version %d: %t, %+v", bad, r.Changed, r.Notes)
		}
	}
}

// Without preserveUnknownFields, the API server would prune by a schema that cannot be
// fixed: nothing is changed then.
func TestOneVersionCannotBeFixed(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","id":"x","properties":{"f":`, 2500) + `{"type":"string"}` + strings.Repeat(`}}`, 2500)
	for _, c := range []struct{ name, version, note string }{
		{"no object", `1`, "cannot /spec/versions/1 api-version-removed a version must be an object"},
		{"no schema", `{"name":"v2","schema":{"openAPIV3Schema":[]}}`, "cannot /spec/versions/1/schema/openAPIV3Schema schema-required the schema is not an object"},
		{"a list of schemas", `{"name":"v2","schema":[]}`, "cannot /spec/versions/1/schema/openAPIV3Schema schema-required the schema is not an object"},
		{"too many edits", `{"name":"v2","schema":{"openAPIV3Schema":` + deep + `}}`, "cannot /spec/versions/1/schema/openAPIV3Schema too-many-findings too many changes to show"},
	} {
		document := []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"preserveUnknownFields":true,"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}},` + c.version + `]}}`)
		r, err := fix.CRD(document)
		if err != nil || r.Changed || len(r.Edits) > 0 || string(r.JSON) != string(document) || len(r.Notes) != 1 {
			t.Errorf("%s: %t %d edits, notes %.300v, %v", c.name, r.Changed, len(r.Edits), r.Notes, err)
			continue
		}
		if n := r.Notes[0]; fmt.Sprintf("%s %s %s %s", n.Kind, n.Pointer, n.Check, n.Text) != c.note {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
}

// What v1 has in another place, requires, or does not have. want is the spec, or what is not
// spec; "" if the CRD stays as it is.
func TestUpgrade(t *testing.T) {
	const (
		schema = `"schema":{"openAPIV3Schema":{"type":"object",` + keep + `}}`
		fields = `"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{%}}}}]`
		one    = `"preserveUnknownFields":false,"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`
	)
	for _, c := range []struct{ spec, want, notes string }{
		{`"version":"v1"`, `"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,` + schema + `}]`, "advice /spec/versions/0/schema schema-required"},
		{`"version":"v1","versions":[]`, `"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,` + schema + `}]`, "advice /spec/versions/0/schema schema-required"},
		{`"versions":null,"version":"v1","scope":""`, `"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,` + schema + `}]`, "advice /spec/versions/0/schema schema-required"},
		{`"scope":"","version":"v1"`, `"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,` + schema + `}]`, "advice /spec/versions/0/schema schema-required"},
		{`"versions":[]`, "", "cannot /spec/versions api-version-removed"},
		{`"versions":{}`, "", "cannot /spec/versions api-version-removed"},
		{`"versions":[1]`, "", "cannot /spec/versions/0 api-version-removed"},
		{`"version":"v2","versions":[{"name":"v1"},{"name":"v2"}]`, "", "cannot /spec/version api-version-removed"},
		{`"version":"v1",` + one, one, ""},
		// served and storage were false if they were not written.
		{`"scope":"Cluster","preserveUnknownFields":false,"versions":[{"name":"v1","storage":null,"schema":{"openAPIV3Schema":{"type":"object"}}}]`,
			`"scope":"Cluster","preserveUnknownFields":false,"versions":[{"name":"v1","storage":false,"served":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]`, ""},
		// What stands for all versions, and what versions have of their own.
		{one + `,"validation":{"openAPIV3Schema":{"type":"object","required":["a"]}}`, one, "advice /spec/validation api-version-removed"},
		{one + `,"validation":{},"subresources":null`, one, ""},
		{`"scope":"Cluster","preserveUnknownFields":false,"versions":[{"name":"v1","served":true,"storage":true,"schema":null},{"name":"v2","served":true,"storage":false}],"validation":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}}`,
			`"scope":"Cluster","preserveUnknownFields":false,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}}},
				{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}}}]`, ""},
		{strings.Replace(one, `"served"`, `"additionalPrinterColumns":[{"name":"A","JSONPath":".a"},{"name":"B","jsonPath":".b","JSONPath":".c"},{"jsonPath":".b","JSONPath":".c"}],"served"`, 1),
			strings.Replace(one, `"served"`, `"additionalPrinterColumns":[{"name":"A","jsonPath":".a"},{"name":"B","jsonPath":".b","JSONPath":".c"},{"jsonPath":".b","JSONPath":".c"}],"served"`, 1), ""},
		{`"validation":{"openAPIV3Schema":{"type":"object"}},"scope":"Cluster","preserveUnknownFields":false,"versions":[{"schema":null,"name":"v1","served":true,"storage":true}]`,
			`"scope":"Cluster","preserveUnknownFields":false,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`, ""},
		// Unknown fields were preserved unless the CRD said otherwise.
		{strings.Replace(one, "false", "true", 1), strings.Replace(strings.Replace(one, `"preserveUnknownFields":false,`, "", 1), `"object"`, `"object",`+keep, 1), "advice " + inCRD + " preserve-unknown-fields"},
		// Below the root, API servers do not look for fields that only branches have, and prune them.
		{strings.Replace(fields, "%", `"f":{"type":"object","anyOf":[{"properties":{"a":{"minLength":1}}},{"maxProperties":1}]}`, 1),
			strings.Replace(fields, "%}", `"f":{"type":"object","anyOf":[{"properties":{"a":{"minLength":1}}},{"maxProperties":1}],"properties":{"a":{"type":"string"}}}},`+keep, 1),
			"narrower " + inCRD + "/properties/f/properties/a/type type-required; advice " + inCRD + " preserve-unknown-fields"},
		// The webhook.
		{one + `,"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}`,
			one + `,"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}}`, ""},
		{one + `,"conversion":{"strategy":"Webhook","conversionReviewVersions":[]}`, one + `,"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1beta1"]}}`,
			"advice /spec/conversion conversion-review-versions"},
		{one + `,"conversion":{"strategy":"None","webhookClientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}`, one + `,"conversion":{"strategy":"None"}`, ""},
		{one + `,"conversion":{"webhookClientConfig":{"url":"u"},"strategy":"None"}`, one + `,"conversion":{"strategy":"None"}`, ""},
		{one + `,"conversion":{"conversionReviewVersions":["v1"],"strategy":"None"}`, one + `,"conversion":{"strategy":"None"}`, ""},
		{one + `,"conversion":{"strategy":"Webhook","webhook":{"x":1},"webhookClientConfig":{"url":"u"}}`, one + `,"conversion":{"strategy":"Webhook","webhook":{"x":1}}`, ""},
		{one + `,"conversion":[]`, "", "cannot /spec/conversion api-version-removed"},
		// Groups of the Kubernetes project need an approval.
		{one + `,"group":"x.k8s.io"`, one + `,"group":"x.k8s.io"`, "cannot /metadata api-approval"},
		{one + `,"group":"k8s.io"`, one + `,"group":"k8s.io"`, "cannot /metadata api-approval"},
		{one + `,"group":"x.kubernetes.io"`, one + `,"group":"x.kubernetes.io"`, "cannot /metadata api-approval"},
		{one + `,"group":"kubernetes.io"`, one + `,"group":"kubernetes.io"`, "cannot /metadata api-approval"},
		{one + `,"group":"xk8s.io"`, one + `,"group":"xk8s.io"`, ""},
	} {
		testUpgrade(t, `,"spec":{`+c.spec+`}`, c.want, `,"spec":{`+c.want+`}`, c.notes)
	}
	const spec = `,"spec":{"group":"x.k8s.io",` + one + `}`
	const approved = spec + `,"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved"}}`
	for _, c := range []struct{ rest, want, notes string }{
		{approved + `,"status":{"acceptedNames":{"kind":"","plural":""},"conditions":[],"storedVersions":[]}`, approved, ""},
		{approved + `,"status":{"acceptedNames":{"kind":"K"}}`, approved + `,"status":{"acceptedNames":{"kind":"K"}}`, ""},
		{approved + `,"status":{"acceptedNames":{"plural":"ks"}}`, approved + `,"status":{"acceptedNames":{"plural":"ks"}}`, ""},
		{approved + `,"status":{"conditions":[{}]}`, approved + `,"status":{"conditions":[{}]}`, ""},
		{approved + `,"status":{"storedVersions":["v1"]}`, approved + `,"status":{"storedVersions":["v1"]}`, ""},
		{approved + `,"status":null`, approved + `,"status":null`, ""},
		{``, "", "cannot /spec api-version-removed"},
	} {
		testUpgrade(t, c.rest, c.want, c.want, c.notes)
	}
}

func testUpgrade(t *testing.T, rest, changes, want, notes string) {
	t.Helper()
	document := []byte(`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1"` + rest + `}`)
	r, err := fix.CRD(document)
	if err != nil {
		t.Fatal(err)
	}
	check(t, document, r)
	record(t, rest, r)
	full := string(document)
	if changes != "" {
		full = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"` + want + `}`
	}
	var list []string
	for _, n := range r.Notes {
		list = append(list, fmt.Sprintf("%s %s %s", n.Kind, n.Pointer, n.Check))
	}
	if got := compact(t, string(r.JSON)); got != compact(t, full) || strings.Join(list, "; ") != notes {
		t.Errorf("%s\n got %s %q\nwant %s %q", rest, got, list, compact(t, full), notes)
	}
}
