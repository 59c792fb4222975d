package crd_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// tree is a CRD that nothing is wrong with.
const tree = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"age":{"type":"integer"},"sort":{"type":"string"}}}}}}}]}}`

// edited replaces parts of tree: old, new, old, new and so on.
// validate parses and validates a CRD, and the one before the change.
func validate(doc []byte, o crd.ValidateOptions, old ...[]byte) ([]finding.Finding, error) {
	return validateWithin(doc, o, espalier.Limits{}, old...)
}

func validateWithin(doc []byte, o crd.ValidateOptions, limits espalier.Limits, old ...[]byte) ([]finding.Finding, error) {
	d, err := crd.ParseWithin(doc, limits)
	if err != nil {
		return nil, err
	}
	for _, text := range old {
		if o.Old, err = crd.ParseWithin(text, limits); err != nil {
			return nil, err
		}
	}
	return crd.Validate(d, o)
}

func edited(pairs ...string) string {
	doc := tree
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(doc, pairs[i]) {
			panic("there is no " + pairs[i])
		}
		doc = strings.Replace(doc, pairs[i], pairs[i+1], 1)
	}
	return doc
}

// summary lists findings as rule, path and pointer.
func summary(list []finding.Finding) string {
	var lines []string
	for _, f := range list {
		lines = append(lines, string(f.Check)+" "+f.Path+" "+f.Pointer)
	}
	return strings.Join(lines, "\n")
}

func ExampleValidate() {
	findings, err := validate([]byte(edited(`"trees.orchard.example"`, `"tree.orchard.example"`, `"storage":true`, `"storge":true`)), crd.ValidateOptions{})
	for _, f := range findings {
		fmt.Println(f.Severity, f.Check, f.Pointer)
	}
	fmt.Println(err)
	// Output:
	// error name-mismatch /metadata/name
	// error versions-storage /spec/versions
	// warning unknown-field /spec/versions/0/storge
	// error stored-versions /status/storedVersions
	// <nil>
}

// second is a version like the first of tree, but for its schema.
const second = `,{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"strange"}}}}}]}}`

func TestValidate(t *testing.T) {
	const at = "/spec/versions/0/"
	for _, c := range []struct{ name, doc, want string }{
		{"nothing", tree, ""},
		{"group", edited(`"group":"orchard.example"`, `"group":"orchard"`, `trees.orchard.example`, `trees.orchard`), "group-domain spec.group /spec/group"},
		{"scope", edited(`"Namespaced"`, `"Galaxy"`), "scope-unknown spec.scope /spec/scope"},
		{"approval", edited(`"group":"orchard.example"`, `"group":"orchard.k8s.io"`, `trees.orchard.example`, `trees.orchard.k8s.io`),
			"api-approval metadata.annotations[api-approved.kubernetes.io] /metadata/annotations/api-approved.kubernetes.io"},
		{"label", edited(`"metadata":{`, `"metadata":{"labels":{"a/b":"?"},`), "object-metadata metadata.labels /metadata/labels"},
		{"owner", edited(`"metadata":{`, `"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a"}],`),
			"object-metadata metadata.ownerReferences[0].uid /metadata/ownerReferences/0/uid"},
		{"names", edited(`"kind":"Tree"`, `"kind":"Tree","listKind":"Tree","shortNames":["ok","T"]`),
			"kind-list-kind-equal spec.names.listKind /spec/names/listKind\nnames-invalid spec.names.shortNames[1] /spec/names/shortNames/1"},
		{"column", edited(`"storage":true,`, `"storage":true,"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":"a"}],`),
			"printer-column spec.additionalPrinterColumns[0].JSONPath " + at + "additionalPrinterColumns/0/jsonPath"},
		{"selectable", edited(`"storage":true,`, `"storage":true,"selectableFields":[{"jsonPath":".spec.sort"},{"jsonPath":".spec.none"},{"jsonPath":".spec.sort"}],`),
			"selectable-field spec.selectableFields[1].jsonPath " + at + "selectableFields/1/jsonPath\nselectable-field spec.selectableFields[2].jsonPath " + at + "selectableFields/2/jsonPath"},
		{"scale", edited(`"storage":true,`, `"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.n"}},`),
			"scale-path spec.subresources.scale.statusReplicasPath " + at + "subresources/scale/statusReplicasPath"},
		{"no schema", edited(`"openAPIV3Schema"`, `"x"`), "schema-required spec.versions[0].schema.openAPIV3Schema " + at + "schema/openAPIV3Schema\nunknown-field spec.versions[0].schema.x " + at + "schema/x"},
		{"one schema", edited(`"integer"`, `"int"`), "type-unknown spec.validation.openAPIV3Schema.properties[spec].properties[age].type " + at + "schema/openAPIV3Schema/properties/spec/properties/age/type"},
		{"two schemas", edited(`]}}`, second), "type-unknown spec.versions[1].schema.openAPIV3Schema.properties[spec].type /spec/versions/1/schema/openAPIV3Schema/properties/spec/type"},
		{"deprecated", edited(`"storage":true,`, `"storage":true,"deprecationWarning":"old",`), "deprecation-warning spec.versions[0].deprecationWarning " + at + "deprecationWarning"},
		{"conversion", edited(`"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"n"}},"conversionReviewVersions":["v7"]}},"scope"`),
			"conversion-review-versions spec.conversion.conversionReviewVersions /spec/conversion/webhook/conversionReviewVersions\n" +
				"conversion-service spec.conversion.webhookClientConfig.service.name /spec/conversion/webhook/clientConfig/service/namespace"},
		{"preserve", edited(`"scope"`, `"preserveUnknownFields":true,"scope"`), "preserve-unknown-fields spec.preserveUnknownFields /spec/preserveUnknownFields"},
		{"rule", edited(`"type":"integer"`, `"type":"integer","x-kubernetes-validations":[{"rule":"self > ''"}]`),
			"rule-expression spec.validation.openAPIV3Schema.properties[spec].properties[age].x-kubernetes-validations[0].rule " + at + "schema/openAPIV3Schema/properties/spec/properties/age/x-kubernetes-validations/0/rule"},
		{"status is not the sender's", edited(`]}}`, `]},"status":{"storedVersions":["v0"],"acceptedNames":{"plural":"?"}}}`), ""},
		{"unknown items", edited(`"storage":true,`, `"storage":true,"additionalPrinterColumns":[`+strings.Repeat(`{"name":"A","type":"date","jsonPath":".a"},`, 10)+`{"name":"A","type":"date","jsonPath":".a","x":1}],`), "unknown-field spec.versions[0].additionalPrinterColumns[10].x " + at + "additionalPrinterColumns/10/x"},
		{"unknown at the root", edited(`"metadata":{`, `"a":{},"metadata":{`), "unknown-field a /a"},
		{"twice", edited(`"scope":"Namespaced"`, `"scope":"x","scope":"Namespaced"`), "duplicate-key spec.scope /spec/scope"},
	} {
		found, err := validate([]byte(c.doc), crd.ValidateOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := summary(found); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// TestOffsets checks that findings point to the text in question, in a version
// whose schema was parsed as part of another one too.
func TestOffsets(t *testing.T) {
	strange := `{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"strange"},"b":{"type":"string","x-kubernetes-validations":[{"rule":"self.c"}]}}}}`
	doc := edited(`]}}`, `,{"name":"v2","schema":`+strange+`},{"name":"v3","schema":`+strange+`}]}}`, `"Namespaced"`, `"Nowhere"`, `"kind":"Tree"`, `"kind":"No Tree"`)
	found, err := validate([]byte(doc), crd.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		text := doc[f.Offset:]
		got = append(got, fmt.Sprintf("%s %d %s", f.Check, strings.Count(doc[:f.Offset], `"name":"v`), text[:min(len(text), 9)]))
	}
	slices.Sort(got)
	want := []string{`names-invalid 0 "No Tree"`, `names-invalid 0 {"plural"`, `names-invalid 0 {"plural"`,
		`rule-expression 2 .c"}]}}}}`, `rule-expression 3 .c"}]}}}}`, `scope-unknown 0 "Nowhere"`, `type-unknown 2 "strange"`, `type-unknown 3 "strange"`}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	rule := edited(`"type":"integer"`, `"type":"integer","x-kubernetes-validations":[{"rule":"self > nothing"}]`)
	found, err = validate([]byte(rule), crd.ValidateOptions{})
	if err != nil || len(found) != 1 || !strings.HasPrefix(rule[found[0].Offset:], "nothing") {
		t.Error(found, err)
	}
	// What is about a schema as a whole is where the schema is.
	costly := edited(`"age":`, `"l":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, self.all(z, x == y || y == z)))"}]},"age":`)
	found, err = validate([]byte(costly), crd.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		want := `"self.all(x`
		if f.Path == "spec.validation.openAPIV3Schema" {
			want = `{"type":"object","properties":{"spec"`
		}
		if len(found) != 3 || !strings.HasPrefix(costly[f.Offset:], want) {
			t.Errorf("%v is at %.40s", f, costly[f.Offset:])
		}
	}
	// Items of lists, also of those that the document does not have.
	for _, c := range []struct{ doc, old, path, at string }{
		{edited(`"kind":"Tree"`, `"kind":"Tree","shortNames":["ok","T"]`), "", "spec.names.shortNames[1]", `"T"`},
		{tree, edited(`]}}`, `]},"status":{"storedVersions":["v1"],"acceptedNames":{"categories":["?"]}}}`), "status.acceptedNames.categories[0]", tree},
		{edited(`"metadata":{`, `"metadata":{"ownerReferences":[{"uid":"u","apiVersion":"v1","kind":"A","name":"a"},{"apiVersion":"v1","kind":"B","name":"b"}],`), "", "metadata.ownerReferences[1].uid", `{"apiVersion":"v1","kind":"B"`},
	} {
		var old [][]byte
		if c.old != "" {
			old = append(old, []byte(c.old))
		}
		found, err := validate([]byte(c.doc), crd.ValidateOptions{}, old...)
		if err != nil || len(found) != 1 || found[0].Path != c.path || !strings.HasPrefix(c.doc[found[0].Offset:], c.at) {
			t.Errorf("%s: %v, %v", c.path, found, err)
		}
	}
}

// The first hundred errors in metadata have their exact place.
func TestPlacesInMetadata(t *testing.T) {
	var owners []string
	for range 102 {
		owners = append(owners, `{"":1,"apiVersion":"v1","kind":"A","name":"a"}`)
	}
	found, err := validate([]byte(edited(`"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Join(owners, ",")+`],`)), crd.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	exact, around := 0, 0
	for _, f := range found {
		switch {
		case f.Check != "object-metadata":
		case f.Pointer == "/metadata":
			around++
		case strings.NewReplacer(".", "/", "[", "/", "]", "").Replace("/"+f.Path) == f.Pointer:
			exact++
		}
	}
	if exact != 100 || around != 2 {
		t.Errorf("%d have their exact place, %d have none", exact, around)
	}
}

func TestValidateChange(t *testing.T) {
	const established = `]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`
	const plain = `,{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	strange := []string{`"type":"integer"`, `"type":"strange"`}
	for _, c := range []struct{ name, old, doc, want string }{
		{"nothing", tree, tree, ""},
		{"twice before", edited(`"scope":"Namespaced"`, `"scope":"x","scope":"Namespaced"`), tree, ""},
		{"name", tree, edited(`"trees.orchard.example"`, `"shrubs.orchard.example"`), "object-metadata metadata.name /metadata/name"},
		{"group", tree, edited(`"group":"orchard.example"`, `"group":"garden.example"`), "field-immutable spec.group /spec/group"},
		{"plural", tree, edited(`"plural":"trees"`, `"plural":"shrubs"`), "field-immutable spec.names.plural /spec/names/plural"},
		{"kind before it is served", tree, edited(`"Tree"`, `"Shrub"`), ""},
		{"kind after that", edited(`]}}`, established), edited(`"Tree"`, `"Shrub"`), "field-immutable spec.names.kind /spec/names/kind"},
		{"scope after that", edited(`]}}`, established), edited(`"Namespaced"`, `"Cluster"`), "field-immutable spec.scope /spec/scope"},
		{"version gone", tree, edited(`"name":"v1"`, `"name":"v2"`), "stored-versions status.storedVersions[0] /spec/versions"},
		{"version no more stored", tree, edited(`"storage":true`, `"storage":false`, `]}}`, `,{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`), ""},
		{"types were strange before", edited(strange...), edited(append(slices.Clone(strange), `"type":"string"`, `"type":"text"`)...), ""},
		{"types were not", tree, edited(strange...), "type-unknown spec.validation.openAPIV3Schema.properties[spec].properties[age].type /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/age/type"},
		{"format was unknown before", edited(`"string"`, `"string","format":"x"`), edited(`"string"`, `"string","format":"x","minLength":1`), ""},
		{"format was known", tree, edited(`"string"`, `"string","format":"x"`), "format-unrecognized spec.validation.openAPIV3Schema.properties[spec].properties[sort].format /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sort/format"},
		{"unpruned before, in one version of two", edited(`"properties":{"age"`, `"default":{"x":1},"properties":{"age"`, `]}}`, plain), edited(`"properties":{"age"`, `"default":{"y":1},"properties":{"age"`, `]}}`, plain), ""},
		{"unpruned before", edited(`"properties":{"age"`, `"default":{"x":1},"properties":{"age"`), edited(`"properties":{"age"`, `"default":{"y":1},"properties":{"age"`), ""},
	} {
		found, err := validate([]byte(c.doc), crd.ValidateOptions{}, []byte(c.old))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := summary(found); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// TestStoredExpressions checks that what rules had before may be newer than the
// compatibility version.
func TestStoredExpressions(t *testing.T) {
	doc := []byte(edited(`"type":"string"`, `"type":"string","x-kubernetes-validations":[{"rule":"isSemver(self)","messageExpression":"string(isSemver(self))"}]`))
	o := crd.ValidateOptions{CompatibilityVersion: "1.30"}
	if found, err := validate(doc, o); err != nil || len(found) != 1 {
		t.Error(found, err)
	}
	if found, err := validate(doc, o, doc); err != nil || len(found) != 0 {
		t.Error(found, err)
	}
}

// TestVerbatim checks that status and metadata count if they are what is stored.
func TestVerbatim(t *testing.T) {
	doc := []byte(edited(`]}}`, `]},"status":{"storedVersions":["v0","v1"],"acceptedNames":{"plural":"?"}}}`))
	found, err := validate(doc, crd.ValidateOptions{Verbatim: true})
	want := "names-invalid status.acceptedNames.plural /status/acceptedNames/plural\nstored-versions status.storedVersions[0] /status/storedVersions/0"
	if got := summary(found); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	found, err = validate([]byte(tree), crd.ValidateOptions{Verbatim: true}, []byte(tree))
	if got := summary(found); err != nil || got != "object-metadata metadata.resourceVersion /metadata/resourceVersion" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct{ doc, pointer, msg string }{
		{edited(`"served":true`, `"served":"yes"`), "/spec/versions/0/served", "must be a boolean, but is a string"},
		{edited(`"name":"v1"`, `"name":1`), "/spec/versions/0/name", "must be a string, but is a number"},
		{edited(`"names":{`, `"names":[],"x":{`), "/spec/names", "must be an object, but is an array"},
		{edited(`"type":"integer"`, `"type":7`), "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/age/type", "must be a string, but is a number"},
		{edited(`"metadata":{`, `"metadata":{"creationTimestamp":"now",`), "/metadata/creationTimestamp", "must be a time such as 2006-01-02T15:04:05Z, but is a string"},
		{edited(`"metadata":{`, `"metadata":{"labels":{"a":1},`), "/metadata/labels/a", "must be a string, but is a number"},
		{edited(`"scope"`, `"conversion":{"webhook":{"clientConfig":{"caBundle":"!"}}},"scope"`), "/spec/conversion/webhook/clientConfig/caBundle", "must be base64, but is a string"},
		{edited(`"scope"`, `"conversion":{"webhook":{"clientConfig":{"service":{"port":1.5}}}},"scope"`), "/spec/conversion/webhook/clientConfig/service/port", "must be an integer, but is a number"},
	} {
		_, err := validate([]byte(c.doc), crd.ValidateOptions{})
		var syntax *espalier.SyntaxError
		if !errors.As(err, &syntax) || syntax.Pointer != c.pointer || syntax.Msg != c.msg {
			t.Errorf("%v instead of %s: %s", err, c.pointer, c.msg)
		}
		if _, err := validate([]byte(tree), crd.ValidateOptions{}, []byte(c.doc)); !errors.As(err, &syntax) {
			t.Errorf("as the old CRD: %v", err)
		}
	}
	if _, err := validate([]byte(`{"kind":"List"}`), crd.ValidateOptions{}); !errors.Is(err, crd.ErrNotCRD) {
		t.Error(err)
	}
}

func TestRemovedVersion(t *testing.T) {
	beta := []byte(strings.Replace(webs, "k8s.io/v1", "k8s.io/v1beta1", 1))
	found, err := validate(beta, crd.ValidateOptions{})
	if got := summary(found); err != nil || got != "api-version-removed apiVersion /apiVersion" {
		t.Error(got, err)
	} else if got := found[0].Error(); got != `apiVersion: Invalid value: "apiextensions.k8s.io/v1beta1": no API server serves it since Kubernetes 1.22; write the CRD in apiextensions.k8s.io/v1` {
		t.Error(got)
	}
	_, err = validate([]byte(tree), crd.ValidateOptions{}, beta)
	if err == nil || err.Error() != "the old CRD is in apiextensions.k8s.io/v1beta1; use it as the API server returns it, in apiextensions.k8s.io/v1" {
		t.Errorf("a CRD of v1beta1 as the stored CRD: %v", err)
	}
}

// A compatibility version that is none is an error wherever there are rules.
func TestWrongCompatibilityVersion(t *testing.T) {
	ruled := edited(`"type":"integer"`, `"type":"integer","x-kubernetes-validations":[{"rule":"self > 2"}]`)
	for _, doc := range []string{ruled, strings.Replace(ruled, `]}}`, second, 1)} {
		if _, err := validate([]byte(doc), crd.ValidateOptions{CompatibilityVersion: "x"}); err == nil {
			t.Errorf("%s: no error", doc)
		}
	}
	if _, err := crd.Check([]byte(`{"type":"object","x-kubernetes-validations":[{"rule":"true"}]}`), crd.CheckOptions{CompatibilityVersion: "x"}); err == nil {
		t.Error("no error of the schema")
	}
}

func TestNearestField(t *testing.T) {
	for wrong, want := range map[string]string{
		`"additionalPrinterColums":[]`: `"additionalPrinterColumns"`, `"Served":true`: `"served"`, `"selectableField":[]`: `"selectableFields"`, `"entirelyUnlike":1`: "",
	} {
		found, err := validate([]byte(edited(`"storage":true`, `"storage":true,`+wrong)), crd.ValidateOptions{})
		if err != nil || len(found) != 1 || found[0].Check != "unknown-field" || found[0].Severity != finding.Warning {
			t.Fatal(found, err)
		}
		_, got, _ := strings.Cut(found[0].Detail, "did you mean ")
		if strings.TrimSuffix(got, "?") != want {
			t.Errorf("%s: %s", wrong, found[0].Detail)
		}
	}
}

func TestChecksTable(t *testing.T) {
	seen := map[finding.ID]bool{}
	for _, r := range crd.Checks {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(string(r.ID)) || seen[r.ID] || r.Source == "" || !strings.HasSuffix(r.Explanation, ".") {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
	}
}

// TestHostileCRDs checks that what is made to have as many and as long
// findings as possible takes neither long nor much memory.
func TestHostileCRDs(t *testing.T) {
	many := func(n int, item func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = item(i)
		}
		return strings.Join(parts, ",")
	}
	const n = 5_000
	unknown := many(n, func(i int) string { return `"x` + strconv.Itoa(i) + `":1` })
	for name, doc := range map[string]string{
		"names":    edited(`"kind":"Tree"`, unknown+`,"kind":"Tree","shortNames":[`+many(n, func(int) string { return `"?"` })+`]`),
		"versions": edited(`]}}`, `,`+many(n, func(i int) string { return `{"storage":true,"name":"` + strconv.Itoa(i) + `"}` })+`]}}`),
		"columns":  edited(`"storage":true`, `"storage":true,"additionalPrinterColumns":[`+many(n, func(int) string { return `{}` })+`]`),
		"fields":   edited(`"storage":true`, `"storage":true,"selectableFields":[`+many(n, func(i int) string { return `{"jsonPath":".a` + strconv.Itoa(i) + `"}` })+`]`),
		"webhook":  edited(`"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":[`+many(n, func(int) string { return `"?"` })+`],"clientConfig":{"service":{"name":"n","namespace":"n","path":"`+strings.Repeat("/A", n)+`"}}}},"scope"`),
		"owners":   edited(`"metadata":{`, `"metadata":{"ownerReferences":[`+many(n, func(int) string { return `{"controller":true}` })+`],`),
		"labels":   edited(`"metadata":{`, `"metadata":{"labels":{`+many(n, func(i int) string { return `"?` + strconv.Itoa(i) + `":"?"` })+`},`),
	} {
		var found []finding.Finding
		var err error
		costtest.Within(t, 20*time.Second, func() { found, err = validate([]byte(doc), crd.ValidateOptions{}, []byte(doc)) })
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %d findings, %v", name, len(found), err)
		}
	}
}

// A CRD can be validated by several goroutines, also after Release.
func TestConcurrent(t *testing.T) {
	doc := []byte(edited(`"type":"integer"`, `"type":"integer","default":3,"x-kubernetes-validations":[{"rule":"self > 2"}]`, `"storage":true`, `"storage":false`))
	d, err := crd.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	want, err := crd.Validate(d, crd.ValidateOptions{})
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	d.Release()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, err := crd.Validate(d, crd.ValidateOptions{Old: d}); err != nil || len(got) != len(want) {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(tree), []byte(nil), false)
	f.Add([]byte(webs), []byte(tree), true)
	f.Add([]byte(edited(`"storage":true,`, `"storage":true,"selectableFields":[{"jsonPath":".spec.sort"}],"subresources":{"status":{},"scale":{}},"additionalPrinterColumns":[{}],`)), []byte(webs), false)
	f.Add([]byte(edited(`]}}`, second, `"scope"`, `"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"Cg==","url":"http://"}}},"scope"`)), []byte(edited(`]}}`, second)), true)
	f.Fuzz(func(t *testing.T, doc, old []byte, verbatim bool) {
		var before [][]byte
		if len(old) > 0 {
			before = append(before, old)
		}
		within := espalier.Limits{MaxBytes: 1 << 16}
		found, err := validateWithin(doc, crd.ValidateOptions{Verbatim: verbatim}, within, before...)
		wrong := 0
		rest, failed := validateWithin(doc, crd.ValidateOptions{Verbatim: verbatim, Undecodable: func(e *espalier.SyntaxError) {
			if wrong++; e.Offset < 0 || e.Offset >= len(doc) {
				t.Errorf("undecodable at %d", e.Offset)
			}
		}}, within, before...)
		if (err == nil) != (wrong == 0 && failed == nil) || err == nil && len(rest) != len(found) {
			t.Errorf("%v, but %d undecodable values, %v", err, wrong, failed)
		}
		if err != nil {
			return
		}
		for i, x := range found {
			if x.Offset < 0 || x.Offset >= len(doc) || x.Error() == "" || x.Check == "" || x.Pointer != "" && x.Pointer[0] != '/' {
				t.Errorf("finding %+v", x)
			}
			if i > 0 && found[i-1].Path > x.Path {
				t.Error("not sorted")
			}
		}
	})
}

// Formats of names are as new as Kubernetes 1.34.
func TestFormatsOfVersions(t *testing.T) {
	const doc = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.org"},"spec":{"group":"example.org",
		"scope":"Namespaced","names":{"plural":"webs","kind":"Web"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string","format":"k8s-short-name"}}}}}]}}`
	for version, want := range map[string]int{"": 0, "1.34": 0, "1.33": 1, "1.28": 1} {
		found, err := validate([]byte(doc), crd.ValidateOptions{CompatibilityVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range found {
			if f.Check == "format-unrecognized" {
				n++
			}
		}
		if n != want {
			t.Errorf("%q: %d warnings of the format, want %d", version, n, want)
		}
	}
}
