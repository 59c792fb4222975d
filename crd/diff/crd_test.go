package diff_test

import (
	"slices"
	"strings"
	"testing"
)

// orchard is a CRD with everything that CRDs have besides schemas.
const orchard = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
	"spec":{"group":"orchard.example","scope":"Namespaced",
	"names":{"plural":"trees","singular":"tree","kind":"Tree","listKind":"TreeList","shortNames":["tr"],"categories":["all"]},
	"preserveUnknownFields":false,
	"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://a.example","caBundle":"YQ=="}}},
	"versions":[
	{"name":"v1","served":true,"storage":true,"deprecated":false,"schema":{"openAPIV3Schema":{"type":"object"}},
		"subresources":{"status":{},"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".status.s"}},
		"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a","description":"d","format":"date","priority":1}],"selectableFields":[{"jsonPath":".spec.a"}]},
	{"name":"v2","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"f":{"type":"integer","maximum":5}}}}}]},
	"status":{"storedVersions":["v1"]}}`

// TestCRDs has changes of what is around the schemas. Versions stand before the changes.
func TestCRDs(t *testing.T) {
	const v1, v2 = `{"name":"v1","served":true,"storage":true`, `{"name":"v2","served":false,"storage":false`
	const webhook = `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://a.example","caBundle":"YQ=="}}},`
	last := orchard[strings.Index(orchard, ",\n\t{\"name\":\"v2\""):strings.Index(orchard, "]},\n\t\"status\"")]
	first := orchard[strings.Index(orchard, "\n\t{\"name\":\"v1\""):strings.Index(orchard, "\n\t{\"name\":\"v2\"")]
	const columns = `v1 safe R printer-columns-changed [{"description":"d","format":"date","jsonPath":".spec.a","name":"A","priority":1…`
	type edits []string // pairs of a text and its replacement
	cases := []struct {
		name     string
		old, now edits
		want     []string
	}{
		{"the same", nil, nil, nil},
		{"name", nil, edits{`"name":"trees.orchard.example"`, `"name":"trees.other.example"`}, only("breaking WRS name-changed trees.orchard.example → trees.other.example")},
		{"group", nil, edits{`"group":"orchard.example"`, `"group":"other.example"`}, only("breaking WRS group-changed orchard.example → other.example")},
		{"plural", nil, edits{`"plural":"trees"`, `"plural":"plants"`}, only("breaking WRS plural-changed trees → plants")},
		{"singular", nil, edits{`"singular":"tree"`, `"singular":"plant"`}, only("risky WR singular-changed tree → plant")},
		{"list kind", nil, edits{`"TreeList"`, `"Trees"`}, only("risky R list-kind-changed TreeList → Trees")},
		{"kind, which implies others", nil, edits{`"kind":"Tree"`, `"kind":"Plant"`, `"TreeList"`, `"PlantList"`, `"singular":"tree"`, `"singular":"plant"`}, only("breaking WRS kind-changed Tree → Plant")},
		{"scope", nil, edits{`"Namespaced"`, `"Cluster"`}, only("breaking WRS scope-changed Namespaced → Cluster")},
		{"short name", nil, edits{`["tr"]`, `["te"]`}, only("risky WR short-name-removed tr →", "safe R short-name-added → te")},
		{"categories", nil, edits{`["all"]`, `["all","green"]`}, only("safe R categories-changed all → all, green")},
		{"unknown fields are preserved", nil, edits{`"preserveUnknownFields":false`, `"preserveUnknownFields":true`}, only("safe R preserve-added → true")},
		{"unknown fields are pruned", edits{`"preserveUnknownFields":false`, `"preserveUnknownFields":true`}, nil, only("breaking WRS preserve-removed true →")},

		{"no webhook", nil, edits{webhook, `"conversion":{"strategy":"None"},`}, only("risky WRS conversion-changed Webhook → None")},
		{"None is said", edits{webhook, ``}, edits{webhook, `"conversion":{"strategy":"None"},`}, nil},
		{"another webhook", nil, edits{`https://a.example`, `https://b.example`}, only("risky WRS conversion-changed Webhook → Webhook")},
		{"a webhook of other reviews", nil, edits{`"conversionReviewVersions":["v1"]`, `"conversionReviewVersions":["v1beta1"]`}, only("risky WRS conversion-changed Webhook → Webhook")},
		{"another certificate", nil, edits{`"YQ=="`, `"Yg=="`}, nil},
		{"a webhook for one version", edits{webhook, ``, last, ``}, edits{last, ``}, only("safe R conversion-changed None → Webhook")},

		{"version added", edits{last, ``}, nil, only("v2 safe R version-added → v2")},
		{"version removed that was not served", nil, edits{last, ``}, only("v2 safe version-removed v2 →")},
		{"version removed", edits{v2, `{"name":"v2","served":true,"storage":false`}, edits{last, ``}, only("v2 breaking WR version-removed v2 →")},
		{"version removed in which objects may be stored", edits{`"storedVersions":["v1"]`, `"storedVersions":["v1","v2"]`}, edits{last, ``}, only("breaking S stored-version-dropped v2 →", "v2 safe version-removed v2 →")},
		{"version removed in which objects are still stored", nil, edits{last, ``, `"storedVersions":["v1"]`, `"storedVersions":["v1","v2"]`}, only("breaking S stored-version-dropped v2 →", "v2 safe version-removed v2 →")},
		{"version served", nil, edits{v2, `{"name":"v2","served":true,"storage":false`}, only("v2 safe R version-served false → true")},
		{"version withdrawn", nil, edits{v1, `{"name":"v1","served":false,"storage":true`}, only("v1 breaking WR version-withdrawn true → false")},
		{"deprecated", nil, edits{`"deprecated":false`, `"deprecated":true`}, only("v1 safe WR deprecation-added → true")},
		{"no longer deprecated", edits{`"deprecated":false`, `"deprecated":true`}, nil, only("v1 safe WR deprecation-removed true →")},
		{"storage version", nil, edits{v1, `{"name":"v1","served":true,"storage":false`, v2, `{"name":"v2","served":false,"storage":true`}, only("risky S storage-version-changed v1 → v2")},
		// Without a webhook, what is stored as v1 is read as v3: its schema applies.
		{"storage version replaced", edits{webhook, ``, last, ``}, edits{webhook, ``, last, ``, `"name":"v1"`, `"name":"v3"`, `"status":{},`, ``, `{"type":"object"}`, `{"type":"object","required":["a"]}`, `"storedVersions":["v1"]`, `"storedVersions":["v3"]`},
			only("risky S storage-version-changed v1 → v3", "breaking S stored-version-dropped v1 →", "v1 breaking WR version-removed v1 →", "v1 to v3 breaking S required-added a → a", "v3 safe R version-added → v3")},
		{"storage version replaced, with a webhook", edits{last, ``}, edits{last, ``, `"name":"v1"`, `"name":"v3"`, `{"type":"object"}`, `{"type":"object","required":["a"]}`},
			only("risky S storage-version-changed v1 → v3", "breaking S stored-version-dropped v1 →", "v1 breaking WR version-removed v1 →", "v3 safe R version-added → v3")},
		{"storage version changed between versions that stay", edits{webhook, ``}, edits{webhook, ``, v1, `{"name":"v1","served":true,"storage":false`, v2, `{"name":"v2","served":false,"storage":true`},
			only("risky S storage-version-changed v1 → v2")},
		{"the storage version before is gone", edits{webhook, ``}, edits{webhook, ``, first, ``, v2, `{"name":"v2","served":true,"storage":true`},
			only("risky S storage-version-changed v1 → v2", "breaking S stored-version-dropped v1 →", "v1 breaking WR version-removed v1 →", "v1 to v2 safe R field-added f → integer", "v2 safe R version-served false → true")},
		{"a new version twice", nil, edits{v2, `{"name":"v3","served":false,"storage":false},{"name":"v3","served":true,"storage":false`}, only("v2 safe version-removed v2 →", "v3 safe R version-added → v3")},
		{"objects are stored in a version that neither has", edits{`"storedVersions":["v1"]`, `"storedVersions":["v0","v1"]`}, nil, nil},
		{"no storage version before", edits{webhook, ``, v1, `{"name":"v1","served":true,"storage":false`}, edits{webhook, ``}, nil},
		{"no storage version now", edits{webhook, ``}, edits{webhook, ``, v1, `{"name":"v1","served":true,"storage":false`}, nil},
		// No client uses a version that is not served; objects may be stored in it.
		{"schema of a version that is not served", nil, edits{`"maximum":5`, `"maximum":4`}, only("v2 breaking S maximum-lowered f 5 → 4")},
		{"schema of a version that is not served relaxed", nil, edits{`"maximum":5`, `"maximum":6`}, only("v2 safe maximum-raised f 5 → 6")},
		{"a second version of the same name", edits{v2, `{"name":"v1","served":false,"storage":false`}, edits{v2, `{"name":"v1","served":false,"storage":false`, `"maximum":5`, `"maximum":4`}, nil},
		{"a schema removed", edits{webhook, ``}, edits{webhook, ``, `"schema":{"openAPIV3Schema":{"type":"object","properties":{"f":{"type":"integer","maximum":5}}}}`, `"schema":null`}, only("v2 safe type-widened object → any", "v2 safe nullable-added → true", "v2 breaking S field-removed f integer →")},

		{"status added", edits{`"status":{},`, ``}, nil, only("v1 breaking W status-subresource-added")},
		{"status removed", nil, edits{`"status":{},`, ``}, only("v1 breaking W status-subresource-removed")},
		{"scale removed", nil, edits{`,"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".status.s"}`, ``}, only("v1 breaking WR scale-removed")},
		{"scale added", edits{`,"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".status.s"}`, ``}, nil, only("v1 safe WR scale-added")},
		{"scale of another field", edits{`,"labelSelectorPath":".status.s"`, ``}, edits{`,"labelSelectorPath":".status.s"`, ``, `"specReplicasPath":".spec.a"`, `"specReplicasPath":".spec.b"`},
			only(`v1 risky WR scale-changed {"specReplicasPath":".spec.a","statusReplicasPath":".status.a"} → {"specReplicasPath":".spec.b","statusReplicasPath":".status.a"}`)},
		{"scale with another selector", nil, edits{`".status.s"`, `".status.t"`},
			only(`v1 risky WR scale-changed {"labelSelectorPath":".status.s","specReplicasPath":".spec.a","statusReplicasPat… → {"labelSelectorPath":".status.t","specReplicasPath":".spec.a","statusReplicasPat…`)},
		{"columns", nil, edits{`"priority":1`, `"priority":0`},
			only(columns)},
		{"columns removed", nil, edits{`{"name":"A","type":"string","jsonPath":".spec.a","description":"d","format":"date","priority":1}`, ``}, only(columns)},
		{"selectable field removed", nil, edits{`{"jsonPath":".spec.a"}`, ``}, only("v1 breaking R selectable-field-removed .spec.a →")},
		{"selectable field added", edits{`{"jsonPath":".spec.a"}`, ``}, nil, only("v1 safe R selectable-field-added → .spec.a")},
	}
	var told reports
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old, now := []byte(strings.NewReplacer(c.old...).Replace(orchard)), []byte(strings.NewReplacer(c.now...).Replace(orchard))
			changes, err := compare(old, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range changes {
				line := strings.Replace(shown(x), "  ", " ", 1) // without an audience
				if x.Check == "printer-columns-changed" {
					line, _, _ = strings.Cut(line, " →") // both begin with the same
				}
				got = append(got, strings.TrimSpace(x.Version+" "+line))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("reported:\n\t%s\nexpected:\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			checkDetails(t, old, now, changes)
			told.add(c.name, changes)
		})
	}
	told.check(t, len(cases))
}

// TestPointersOfCRDs moves a version to another place.
func TestPointersOfCRDs(t *testing.T) {
	const first, second = `{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}`, `{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}`
	document := func(versions string) []byte {
		return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
			"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},"versions":[` + versions + `]}}`)
	}
	for _, c := range []struct{ name, old, now, oldAt, newAt string }{
		{"served", first + `},` + second + `}`, strings.Replace(second, `"served":true`, `"served":false`, 1) + `},` + first + `}`, "/spec/versions/1/served", "/spec/versions/0/served"},
		{"deprecated", first + `},` + second + `}`, second + `,"deprecated":true},` + first + `}`, "/spec/versions/1/deprecated", "/spec/versions/0/deprecated"},
		{"removed", first + `},` + second + `}`, first + `}`, "/spec/versions/1", "/spec/versions"},
		{"added", first + `}`, first + `},` + second + `}`, "/spec/versions", "/spec/versions/1"},
		{"selectable", first + `},` + second + `}`, second + `,"selectableFields":[{"jsonPath":".a"}]},` + first + `}`, "/spec/versions/1/selectableFields", "/spec/versions/0/selectableFields"},
		{"storage", first + `},` + second + `}`, strings.Replace(first, `"storage":true`, `"storage":false`, 1) + `},` + strings.Replace(second, `"storage":false`, `"storage":true`, 1) + `}`, "/spec/versions/0", "/spec/versions/1"},
	} {
		changes, err := compare(document(c.old), document(c.now))
		if err != nil || len(changes) != 1 || changes[0].OldPointer != c.oldAt || changes[0].NewPointer != c.newAt {
			t.Errorf("%s: %+v %v", c.name, changes, err)
		}
	}
}
