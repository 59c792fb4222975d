package crd_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
)

// label is what servers say about what should be a label.
const label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

// details lists findings as path and detail, those of warnings left out.
func details(t *testing.T, doc string, o crd.ValidateOptions, old ...string) string {
	t.Helper()
	var before [][]byte
	for _, text := range old {
		before = append(before, []byte(text))
	}
	found, err := validate([]byte(doc), o, before...)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	var lines []string
	for _, f := range found {
		if f.Severity == finding.Error {
			lines = append(lines, strings.TrimSpace(f.Path+" "+string(f.Type)+" "+f.Detail))
		}
	}
	return strings.Join(lines, "\n")
}

// What servers say about versions, columns, scale and selectable fields: the texts are theirs.
func TestVersionFields(t *testing.T) {
	const (
		column   = "spec.additionalPrinterColumns[0]"
		types    = "must be one of boolean,date,integer,number,string"
		scale    = "spec.subresources.scale."
		fields   = "spec.selectableFields[0].jsonPath "
		invalid  = " FieldValueInvalid "
		required = " FieldValueRequired"
	)
	for _, c := range []struct{ version, want string }{
		{`"deprecated":true,"deprecationWarning":"old"`, ""},
		{`"deprecated":true,"deprecationWarning":""`, "spec.versions[0].deprecationWarning" + invalid + "must not be an empty string"},
		{`"deprecated":true,"deprecationWarning":"` + strings.Repeat("x", 256) + `"`, ""},
		{`"deprecated":true,"deprecationWarning":"` + strings.Repeat("x", 257) + `"`, "spec.versions[0].deprecationWarning" + invalid + "must be <= 256 characters long"},
		{`"deprecated":true,"deprecationWarning":"a\nb\nc"`, "spec.versions[0].deprecationWarning" + invalid + "must only contain printable UTF-8 characters; non-printable character found at index 1"},
		{`"deprecated":false,"deprecationWarning":"old"`, "spec.versions[0].deprecationWarning" + invalid + "can only be set for deprecated versions"},

		{`"additionalPrinterColumns":[{"name":"A","type":"date","format":"date-time","jsonPath":".a"}]`, ""},
		{`"additionalPrinterColumns":[{"name":"","type":"date","jsonPath":".a"}]`, column + ".name" + required},
		{`"additionalPrinterColumns":[{"name":"A","jsonPath":".a"}]`, column + ".type" + required + " " + types},
		{`"additionalPrinterColumns":[{"name":"A","type":"text","jsonPath":".a"}]`, column + ".type" + invalid + types},
		{`"additionalPrinterColumns":[{"name":"A","type":"date","format":"text","jsonPath":".a"}]`, column + ".format" + invalid + "must be one of byte,date,date-time,double,float,int32,int64,password"},
		{`"additionalPrinterColumns":[{"name":"A","type":"date"}]`, column + ".JSONPath" + required},
		{`"additionalPrinterColumns":[{"name":"A","type":"date","jsonPath":"a"}]`, column + ".JSONPath" + invalid + "must be a simple json path starting with ."},

		{`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".status.l"}}`, ""},
		{`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".spec.l"}}`, ""},
		{`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":""}}`, ""},
		{`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":".metadata.l"}}`, scale + "labelSelectorPath" + invalid + "should be a json path under either .spec or .status"},
		{`"subresources":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a","labelSelectorPath":"l"}}`, scale + "labelSelectorPath" + invalid + "must be a simple json path starting with ."},
		{`"subresources":{"scale":{"statusReplicasPath":".status.a"}}`, scale + "specReplicasPath" + required},
		{`"subresources":{"scale":{"specReplicasPath":"spec","statusReplicasPath":".status.a"}}`, scale + "specReplicasPath" + invalid + "must be a simple json path starting with ."},
		{`"subresources":{"scale":{"specReplicasPath":".specs.a","statusReplicasPath":".spec.a"}}`,
			scale + "specReplicasPath" + invalid + "should be a json path under .spec\n" + scale + "statusReplicasPath" + invalid + "should be a json path under .status"},

		{`"selectableFields":[{"jsonPath":".spec.age"}]`, ""},
		{`"selectableFields":[{"jsonPath":".spec.sort"}]`, ""},
		{`"selectableFields":[{"jsonPath":".spec.flag"}]`, ""},
		{`"selectableFields":[{"jsonPath":".spec.all.x"}]`, fields + "FieldValueInvalid must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."},
		{`"selectableFields":[{"jsonPath":""}]`, "spec.selectableFields[0].jsonPath" + required},
		{`"selectableFields":[{"jsonPath":".metadata.name"}]`, fields + "FieldValueInvalid is an invalid path: does not refer to a valid field"},
		{`"selectableFields":[{"jsonPath":".spec"}]`, fields + "FieldValueInvalid must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."},
		{`"selectableFields":[{"jsonPath":".spec.age"},{"jsonPath":".spec.sort"},{"jsonPath":".spec.age"}]`, "spec.selectableFields[2].jsonPath FieldValueDuplicate"},
	} {
		if got := details(t, edited(`"storage":true,`, `"storage":true,`+c.version+`,`, `"age":`, `"flag":{"type":"boolean"},"all":{"type":"object","additionalProperties":true},"age":`), crd.ValidateOptions{}); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.version, got, c.want)
		}
	}
	// Where a schema cannot be converted, servers find none of its fields.
	strange := edited(`"storage":true,`, `"storage":true,"selectableFields":[{"jsonPath":".spec.sort"}],`, `"type":"object","properties":{"spec"`, `"type":"object","id":"a","properties":{"spec"`)
	found, err := validate([]byte(strange), crd.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pointers []string
	for _, f := range found {
		pointers = append(pointers, strings.TrimPrefix(f.Pointer, "/spec/versions/0/")+" "+f.Detail)
	}
	want := []string{"schema/openAPIV3Schema OpenAPIV3Schema 'id' is not supported", "selectableFields/0/jsonPath is an invalid path: does not refer to a valid field", "schema/openAPIV3Schema/id id is not supported"}
	if !slices.Equal(pointers, want) {
		t.Errorf("%q\nnot\n%q", pointers, want)
	}
	// Those of versions without a schema.
	start := strings.Index(tree, `,"schema"`)
	if got := details(t, tree[:start]+`,"selectableFields":[{"jsonPath":".spec.age"}]}]}}`, crd.ValidateOptions{}); got != "spec.selectableFields FieldValueInvalid may only be set when validations.schema is included\nspec.versions[0].schema.openAPIV3Schema FieldValueRequired" {
		t.Error(got)
	}
	// A version without selectable fields needs no schema for them.
	if got := details(t, edited(`"storage":true,`, `"storage":true,"selectableFields":[{"jsonPath":".spec.age"}],`, `]}}`, `,{"name":"v2","served":true,"storage":false}]}}`), crd.ValidateOptions{}); got != "spec.versions[1].schema.openAPIV3Schema FieldValueRequired" {
		t.Error(got)
	}
	named := edited(`"storage":true,`, `"storage":true,"selectableFields":[{"jsonPath":".metadata.name"}],`, `"properties":{"spec"`, `"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}},"spec"`)
	if got := details(t, named, crd.ValidateOptions{}); got != fields+"FieldValueInvalid must not point to fields in metadata" {
		t.Error(got)
	}
}

// The list of versions. Servers know the name of the first one in another place, too.
func TestVersionList(t *testing.T) {
	const invalid = " FieldValueInvalid "
	with := func(name string, storage bool) string {
		return edited(`]}}`, fmt.Sprintf(`,{"name":"%s","served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, name, storage))
	}
	for _, c := range []struct{ doc, want string }{
		{with("v2", false), ""},
		{with("V2", false), "spec.versions[1].name" + invalid + label},
		{edited(`"name":"v1"`, `"name":"V1"`), "spec.version" + invalid + label + "\nspec.versions[0].name" + invalid + label},
		{with("v1", false), "spec.versions" + invalid + "must contain unique version names"},
		{with("v2", true), "spec.versions" + invalid + "must have exactly one version marked as storage version\nstatus.storedVersions" + invalid + "must have the storage version v2"},
		{edited(`"group":"orchard.example"`, `"group":"Orchard.example"`, `"trees.orchard.example"`, `"trees.Orchard.example"`), "metadata.name" + invalid + "*\nspec.group" + invalid + "*"},
		{edited(`"group":"orchard.example"`, `"group":""`, `"trees.orchard.example"`, `"trees."`), "metadata.name" + invalid + "*\nspec.group FieldValueRequired"},
		{edited(`"Namespaced"`, `"Galaxy"`), `spec.scope FieldValueNotSupported supported values: "Cluster", "Namespaced"`},
		{edited(`"scope":"Namespaced",`, ``), "spec.scope FieldValueRequired"},
		{edited(`"kind":"Tree"`, `"kind":""`), "spec.names.kind FieldValueRequired\nspec.names.listKind FieldValueRequired\nspec.names.singular FieldValueRequired"},
		{edited(`"kind":"Tree"`, `"kind":"Tree","listKind":"?"`), "spec.names.listKind" + invalid + "may have mixed case, but should otherwise match: " + label},
		{edited(`"kind":"Tree"`, `"kind":"Tree","singular":"Tree"`), "spec.names.singular" + invalid + label},
		{edited(`"kind":"Tree"`, `"kind":"Tree","categories":["all","?"]`), "spec.names.categories[1]" + invalid + label},
	} {
		got, want := strings.Split(details(t, c.doc, crd.ValidateOptions{}), "\n"), strings.Split(c.want, "\n")
		same := slices.EqualFunc(got, want, func(a, b string) bool {
			begin, cut := strings.CutSuffix(b, "*")
			return a == b || cut && strings.HasPrefix(a, begin)
		})
		if !same {
			t.Errorf("%.300s:\n%s\nnot\n%s", c.doc, strings.Join(got, "\n"), c.want)
		}
	}
}

// A version may have eight selectable fields, and more only if it had the same before.
func TestTooManySelectable(t *testing.T) {
	version := func(name string, storage bool, n int) string {
		var properties, fields []string
		for i := range n {
			properties = append(properties, fmt.Sprintf(`"f%d":{"type":"string"}`, i))
			fields = append(fields, fmt.Sprintf(`{"jsonPath":".f%d"}`, i))
		}
		return fmt.Sprintf(`{"name":"%s","served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","properties":{%s}}},"selectableFields":[%s]}`,
			name, storage, strings.Join(properties, ","), strings.Join(fields, ","))
	}
	start := strings.Index(tree, `{"name":"v1"`)
	doc := func(versions ...string) string { return tree[:start] + strings.Join(versions, ",") + "]}}" }
	const all, first, second = "spec.selectableFields", "spec.versions[0].selectableFields", "spec.versions[1].selectableFields"
	for _, c := range []struct{ name, old, doc, want string }{
		{"eight", "", doc(version("v1", true, 8)), ""},
		{"nine", "", doc(version("v1", true, 9)), all},
		{"nine as before", doc(version("v1", true, 9)), doc(version("v1", true, 9)), ""},
		{"ten after nine", doc(version("v1", true, 9)), doc(version("v1", true, 10)), all},
		{"nine after eight", doc(version("v1", true, 8)), doc(version("v1", true, 9)), all},
		{"different", "", doc(version("v1", true, 9), version("v2", false, 8)), first},
		{"different as before", doc(version("v1", true, 9), version("v2", false, 8)), doc(version("v1", true, 9), version("v2", false, 8)), ""},
		{"different, the second grows", doc(version("v1", true, 9), version("v2", false, 8)), doc(version("v1", true, 9), version("v2", false, 10)), second},
		{"different now", doc(version("v1", true, 9)), doc(version("v1", true, 9), version("v2", false, 8)), first},
		{"another version now", doc(version("v1", true, 9), version("v2", false, 8)), doc(version("v1", true, 9), version("v3", false, 8)), ""},
		{"the same now", doc(version("v1", true, 9), version("v2", false, 8)), doc(version("v1", true, 9)), all},
	} {
		var old []string
		if c.old != "" {
			old = append(old, c.old)
		}
		got := details(t, c.doc, crd.ValidateOptions{}, old...)
		if c.want == "" && got != "" || c.want != "" && !strings.HasPrefix(got, c.want+" FieldValueTooMany must have at most 8 items") {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// The webhook that converts between versions.
func TestConversion(t *testing.T) {
	ca, err := os.ReadFile("testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	const (
		at       = "spec.conversion.webhookClientConfig"
		review   = "spec.conversion.conversionReviewVersions"
		service  = `"service":{"name":"n","namespace":"ns"}`
		invalid  = " FieldValueInvalid "
		required = " FieldValueRequired "
		broken   = `"caBundle":"Cg==",` // a line break
	)
	webhook := func(client, versions string) string {
		return `"strategy":"Webhook","webhook":{"clientConfig":{` + client + `},"conversionReviewVersions":` + versions + `}`
	}
	with := func(conversion string) string { return edited(`"scope"`, `"conversion":{`+conversion+`},"scope"`) }
	for _, c := range []struct{ conversion, want string }{
		{`"strategy":"None"`, ""},
		{``, "spec.conversion.strategy FieldValueRequired"},
		{`"strategy":"Other"`, `spec.conversion.strategy FieldValueNotSupported supported values: "None", "Webhook"`},
		{`"strategy":"None","webhook":{"clientConfig":{"url":"u"},"conversionReviewVersions":["v1"]}`,
			review + " FieldValueForbidden should not be set when strategy is not set to Webhook\n" + at + " FieldValueForbidden should not be set when strategy is not set to Webhook"},
		{`"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"]}`, at + required + "required when strategy is set to Webhook"},
		{webhook(service, `["v1"]`), ""},
		{webhook(`"url":"https://h/p"`, `["v1beta1"]`), ""},
		{webhook(`"url":"https://h/p",`+service, `["v1"]`), at + required + "exactly one of url or service is required"},
		{webhook(``, `["v1"]`), at + required + "exactly one of url or service is required"},
		{webhook(`"url":"http://h/p"`, `["v1"]`), at + `.url` + invalid + `'https' is the only allowed URL scheme; desired format: https://host[/path]`},
		{webhook(`"service":{"namespace":"ns","name":"n","port":0}`, `["v1"]`), at + ".service.port" + invalid + "port is not valid: must be between 1 and 65535, inclusive"},
		{webhook(service, `[]`), review + strings.TrimSuffix(required, " ")},
		{webhook(service, `["v1","v1"]`), review + "[1]" + invalid + "duplicate version"},
		{webhook(service, `["v1","?","?"]`), review + "[1]" + invalid + label + "\n" + review + "[2]" + invalid + "duplicate version"},
		{webhook(service, `["v7"]`), review + invalid + "must include at least one of v1, v1beta1"},
		{webhook(service, `["v7","v1"]`), ""},
		{webhook(service, `["v1","?"]`), review + "[1]" + invalid + label},
		// A new CRD may have any bundle.
		{webhook(broken+service, `["v1"]`), ""},
	} {
		if got := details(t, with(c.conversion), crd.ValidateOptions{}); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.conversion, got, c.want)
		}
	}
	// In updates the old CRD decides: whether it was served, and what was wrong with it.
	established := func(doc string) string {
		return strings.Replace(doc, `]}}`, `]},"status":{"conditions":[{"type":"Established","status":"True"}],"storedVersions":["v1"]}}`, 1)
	}
	last := func(doc string) string { // the last of these is the end of the CRD
		i := strings.LastIndex(doc, `]}}`)
		return doc[:i] + established(doc[i:])
	}
	bundle := func(text string) string {
		return `"caBundle":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `",`
	}
	good := bundle(string(ca))
	const loading = at + ".caBundle" + invalid + "unable to load root certificates: "
	for _, c := range []struct{ name, old, now, want string }{
		{"good", last(with(webhook(good+service, `["v1"]`))), with(webhook(good+service, `["v1"]`)), ""},
		{"broken before", last(with(webhook(broken+service, `["v1"]`))), with(webhook(broken+service, `["v1"]`)), ""},
		{"never served", with(webhook(service, `["v1"]`)), with(webhook(broken+service, `["v1"]`)), ""},
		{"good before", last(with(webhook(good+service, `["v1"]`))), with(webhook(broken+service, `["v1"]`)), loading + "unable to parse bytes as PEM block"},
		{"no bundle before", last(with(webhook(service, `["v1"]`))), with(webhook(broken+service, `["v1"]`)), loading + "unable to parse bytes as PEM block"},
		{"no webhook before", last(tree), with(webhook(broken+service, `["v1"]`)), loading + "unable to parse bytes as PEM block"},
		{"not a certificate", last(tree), with(webhook(bundle("-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n")+service, `["v1"]`)), loading + "no valid certificate authority data seen"},
		{"not a certificate inside", last(tree), with(webhook(bundle("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")+service, `["v1"]`)), loading + "failed to parse certificate: x509: malformed certificate"},
		{"with a header", last(tree), with(webhook(bundle(strings.Replace(string(ca), "-----\n", "-----\na: b\n\n", 1))+service, `["v1"]`)), loading + "no valid certificate authority data seen"},
		{"review versions unknown before", last(with(webhook(service, `["v7"]`))), with(webhook(service, `["v8"]`)), ""},
		{"review versions known before", last(with(webhook(service, `["v1"]`))), with(webhook(service, `["v8"]`)), review + invalid + "must include at least one of v1, v1beta1"},
		{"no review versions before", last(tree), with(webhook(service, `["v8"]`)), review + invalid + "must include at least one of v1, v1beta1"},
	} {
		if got := details(t, c.now, crd.ValidateOptions{}, c.old); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// What a decoder refuses, and what it reads as something else than is written.
func TestDecoding(t *testing.T) {
	const client = "/spec/conversion/webhook/clientConfig/"
	for member, pointer := range map[string]string{
		`"caBundle":[10,0,255,null]`: "", `"caBundle":[256]`: client + "caBundle", `"caBundle":[-1]`: client + "caBundle", `"caBundle":["a"]`: client + "caBundle", `"caBundle":[1.5]`: client + "caBundle", `"caBundle":{}`: client + "caBundle",
		`"service":{"port":2147483647}`: "", `"service":{"port":-2147483648}`: "", `"service":{"port":2147483648}`: client + "service/port", `"service":{"port":-2147483649}`: client + "service/port", `"service":{"port":"1"}`: client + "service/port",
		`"url":null`: "", `"url":1`: client + "url", `"service":[]`: client + "service",
	} {
		d, err := crd.Parse([]byte(edited(`"scope"`, `"conversion":{"webhook":{"clientConfig":{`+member+`}}},"scope"`)))
		if err != nil {
			t.Fatal(err)
		}
		err = d.Decodable()
		var syntax *espalier.SyntaxError
		if pointer == "" && err != nil || pointer != "" && (!errors.As(err, &syntax) || syntax.Pointer != pointer) {
			t.Errorf("%s: %v", member, err)
		}
		switch w := d.Conversion.Webhook; member {
		case `"caBundle":[10,0,255,null]`:
			if !slices.Equal(w.CABundle, []byte{10, 0, 255, 0}) {
				t.Errorf("the bundle is %v", w.CABundle)
			}
		case `"service":{"port":2147483647}`, `"service":{"port":-2147483648}`:
			if want := strings.Trim(strings.SplitAfter(member, `"port":`)[1], "}"); strconv.Itoa(int(w.Service.Port)) != want {
				t.Errorf("the port is %d, not %s", w.Service.Port, want)
			}
		case `"service":{"port":2147483648}`, `"service":{"port":-2147483649}`, `"service":{"port":"1"}`:
			if w.Service.Port != 443 {
				t.Errorf("%s: the port is %d", member, w.Service.Port)
			}
		}
	}
	for doc, pointer := range map[string]string{
		edited(`"metadata":{`, `"metadata":{"generation":9223372036854775807,`): "", edited(`"metadata":{`, `"metadata":{"generation":9223372036854775808,`): "/metadata/generation",
		edited(`"metadata":{`, `"metadata":{"creationTimestamp":7,`): "/metadata/creationTimestamp", edited(`"metadata":{`, `"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z",`): "",
		edited(`"metadata":{`, `"metadata":{"finalizers":{},`): "/metadata/finalizers", edited(`"metadata":{`, `"metadata":{"finalizers":["a.b/c",1],`): "/metadata/finalizers/1",
		edited(`"metadata":{`, `"metadata":{"labels":[],`): "/metadata/labels",
	} {
		_, err := validate([]byte(doc), crd.ValidateOptions{})
		var syntax *espalier.SyntaxError
		if pointer == "" && err != nil || pointer != "" && (!errors.As(err, &syntax) || syntax.Pointer != pointer) {
			t.Errorf("%.200s: %v", doc, err)
		}
	}
}
