package exec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

func parse(t testing.TB, src string) *jsondoc.Doc {
	t.Helper()
	d, err := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	t.Cleanup(d.Release)
	return d
}

func render(list []Violation) []string {
	var texts []string
	for i := range list {
		texts = append(texts, list[i].Error())
	}
	return texts
}

// ordinary is metadata as servers store it.
const ordinary = `{
	"name":"a.b-1","generateName":"a.b-","namespace":"default","uid":"0b2a","resourceVersion":"12","generation":3,
	"creationTimestamp":"2024-02-29T12:00:00Z","labels":{"app.kubernetes.io/name":"x","tier":"","b":"A_b.c"},
	"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":1}\n","Example.COM/Note":"ü"},
	"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true,"blockOwnerDeletion":false},{"apiVersion":"v1","kind":"Node","name":"n","uid":"v"}],
	"finalizers":["example.com/f","orphan"],
	"managedFields":[{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","time":"2024-02-29T12:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{}}},"subresource":"status"}]}`

func resource(metadata string) string {
	return `{"apiVersion":"example.com/v1","kind":"Thing","metadata":` + metadata + `,"spec":{}}`
}

// TestRanksOfMetaFields: the constants index what objectMetaStructure ranks.
func TestRanksOfMetaFields(t *testing.T) {
	if n := objectMetaStructure.names.Len(); n != metaFieldCount {
		t.Fatalf("ObjectMeta has %d fields, %d constants", n, metaFieldCount)
	}
	for rank, name := range map[int]string{
		annotationsField: "annotations", creationTimestampField: "creationTimestamp",
		deletionGracePeriodSecondsField: "deletionGracePeriodSeconds", deletionTimestampField: "deletionTimestamp",
		finalizersField: "finalizers", generateNameField: "generateName", generationField: "generation",
		labelsField: "labels", managedFieldsField: "managedFields", nameField: "name", namespaceField: "namespace",
		ownerReferencesField: "ownerReferences", resourceVersionField: "resourceVersion", selfLinkField: "selfLink", uidField: "uid",
	} {
		if got := objectMetaStructure.names.At(rank).Name; got != name {
			t.Errorf("rank %d is %s, not %s", rank, got, name)
		}
	}
}

func TestOrdinaryMetadataIsFast(t *testing.T) {
	d := parse(t, resource(ordinary))
	changed := strings.NewReplacer(`"generation":3`, `"generation":4`, `"tier":""`, `"tier":"web"`, `"example.com/f",`, "").Replace(ordinary)
	deleting := func(s string) string {
		return strings.Replace(s, `"labels"`, `"deletionTimestamp":"2024-03-01T00:00:00Z","deletionGracePeriodSeconds":0,"labels"`, 1)
	}
	updated, dying, dead := parse(t, resource(changed)), parse(t, resource(deleting(ordinary))), parse(t, resource(deleting(changed)))
	for name, check := range map[string]func() bool{
		"embedded":                  func() bool { return embeddedValid(d, jsondoc.Root) },
		"create":                    func() bool { return rootMetadataValid(d, nil, true) },
		"update":                    func() bool { return rootMetadataValid(updated, d, true) },
		"update without a change":   func() bool { return rootMetadataValid(d, d, true) },
		"update of a deleted one":   func() bool { return rootMetadataValid(dead, dying, true) },
		"unchanged in its deletion": func() bool { return rootMetadataValid(dying, dying, true) },
	} {
		if !check() {
			t.Errorf("%s: ordinary metadata takes the slow way", name)
		}
		if n := testing.AllocsPerRun(100, func() { check() }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestEmbeddedErrors(t *testing.T) {
	at := path{{key: []byte("spec")}, {kind: keyStep, key: []byte("k")}, {kind: indexStep, index: 2}}
	const in = "spec[k][2]."
	for _, c := range []struct {
		object string
		want   []string
	}{
		{`{"apiVersion":"v1","kind":"Pod"}`, nil},
		{`{"apiVersion":"/","kind":"Pod-x","metadata":null}`, nil},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{}}`, nil},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"unknown":1,"name":"Any Name?"}}`, nil},
		{`"not an object"`, nil},
		{`{}`, []string{in + `apiVersion: Required value`, in + `kind: Required value`}},
		{`{"apiVersion":null,"kind":5}`, []string{in + `apiVersion: Invalid value: null: must be a string`, in + `kind: Invalid value: 5: must be a string`}},
		{`{"apiVersion":"","kind":""}`, []string{in + `apiVersion: Invalid value: "": must not be empty`, in + `kind: Invalid value: "": must not be empty`}},
		{`{"apiVersion":"a/b/c","kind":"1x"}`, []string{
			in + `apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
			in + `kind: Invalid value: "1x": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
		}},
		{`{"apiVersion":"v1","kind":"Pod","metadata":[]}`, []string{in + `metadata: Invalid value: []: json: cannot unmarshal array into Go value of type v1.ObjectMeta`}},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":1}}}`, []string{in + `metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`}},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"..","generateName":"a/%","namespace":"A."}}`, []string{
			in + `metadata.generateName: Invalid value: "a/%": may not contain '/'`,
			in + `metadata.generateName: Invalid value: "a/%": may not contain '%'`,
			in + `metadata.name: Invalid value: "..": may not be '..'`,
			in + `metadata.namespace: Invalid value: "A.": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		}},
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"generation":-1,"finalizers":["orphan","foregroundDeletion"],"managedFields":[{"operation":"Apply"},{"fieldsType":"x"}],
			"ownerReferences":[{"apiVersion":"a/","kind":"","name":"n","uid":"u"},{"apiVersion":"v1","kind":"Event","name":"n"}]}}`, []string{
			in + `metadata.generation: Invalid value: -1: must be greater than or equal to 0`,
			in + `metadata.ownerReferences[0].apiVersion: Invalid value: "a/": must be <group>/<version> or <version>`,
			in + `metadata.ownerReferences[0].kind: Required value: must not be empty`,
			in + `metadata.ownerReferences[1].uid: Required value: must not be empty`,
			in + `metadata.ownerReferences[1]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":""}: /v1, Kind=Event is disallowed from being an owner`,
			in + `metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`,
			in + `metadata.managedFields[1].operation: Required value: must not be empty`,
			in + "metadata.managedFields[1].fieldsType: Invalid value: \"x\": must be `FieldsV1`",
		}},
	} {
		d := parse(t, c.object)
		got := render(embeddedErrors(d, jsondoc.Root, at))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.object, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if embeddedValid(d, jsondoc.Root) && len(got) > 0 {
			t.Errorf("%s: taken for valid", c.object)
		}
	}
}

func TestRootMetadata(t *testing.T) {
	const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	old := `{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1","generation":2,"creationTimestamp":"2024-01-01T00:00:00Z"}}`
	for _, c := range []struct {
		object, old string
		cluster     bool
		want        []string
	}{
		{`{"metadata":{"name":"a","namespace":"n"}}`, "", false, nil},
		{`{"metadata":{"name":"a"}}`, "", true, nil},
		{`{}`, "", true, []string{`metadata.name: Required value: name or generateName is required`}},
		{`{"metadata":null}`, "", false, []string{`metadata.name: Required value: name or generateName is required`, `metadata.namespace: Required value`}},
		{`{"metadata":"x"}`, "", false, []string{`metadata: Invalid value: "x": expected map[string]interface{}, got string`}},
		{`{"metadata":{"name":1}}`, "", true, []string{`metadata: Invalid value: {"name":1}: cannot convert int64 to string`}},
		{`{"metadata":{"name":"A","namespace":"n"}}`, "", true, []string{
			`metadata.name: Invalid value: "A": ` + subdomain, `metadata.namespace: Forbidden: not allowed on this type`}},
		{`{"metadata":{"name":"a","generateName":"-"}}`, "", true, []string{`metadata.generateName: Invalid value: "-": ` + subdomain}},
		{`{"metadata":{"name":"a","labels":{"b":"!","a":"?","a/b/c":""}}}`, "", true, []string{
			`metadata.labels: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			`metadata.labels: Invalid value: "?": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			`metadata.labels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
		}},
		{`{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 256<<10) + `"}}}`, "", true, []string{
			`metadata.annotations: Too long: may not be more than 262144 bytes`}},
		{`{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 256<<10) + `","a b":""}}}`, "", true, []string{
			`metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			`metadata.annotations: Too long: may not be more than 262144 bytes`}},
		{`{"metadata":{"name":"` + strings.Repeat("a", 253) + `"}}`, "", true, nil},
		{`{"metadata":{"name":"` + strings.Repeat("a", 254) + `"}}`, "", true, []string{
			`metadata.name: Invalid value: "` + strings.Repeat("a", 254) + `": must be no more than 253 characters`}},
		{`{"metadata":{"name":"a","managedFields":[{"operation":"Apply","subresource":"` + strings.Repeat("s", 256) + `"}]}}`, "", true, nil},
		{`{"metadata":{"name":"a","managedFields":[{"operation":"Apply","subresource":"` + strings.Repeat("s", 257) + `"}]}}`, "", true, []string{
			`metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes`}},
		{old, old, false, nil},
		{`{"metadata":{"name":"b","generation":1}}`, old, false, []string{
			`metadata.resourceVersion: Invalid value: "": must be specified for an update`,
			`metadata.generation: Invalid value: 1: must not be decremented`,
			`metadata.name: Invalid value: "b": field is immutable`,
			`metadata.namespace: Invalid value: "": field is immutable`,
			`metadata.uid: Invalid value: "": field is immutable`,
			`metadata.creationTimestamp: Invalid value: null: field is immutable`,
		}},
		{`{"metadata":{"resourceVersion":"1","finalizers":["!","b"],"deletionTimestamp":"2024-01-01T00:00:00Z"}}`,
			`{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z","finalizers":["b"]}}`, false, []string{
				`metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"!"}`}},
		{`{"metadata":{"name":"b","resourceVersion":"1","finalizers":["b"],"deletionTimestamp":"2024-01-01T00:00:00Z"}}`,
			`{"metadata":{"name":"b","deletionTimestamp":"2024-01-01T00:00:00Z"}}`, false, []string{
				`metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"b"}`}},
		{`{"metadata":{"resourceVersion":"1","finalizers":["!"]}}`, `{"metadata":{}}`, false, nil},
		{`{"metadata":{"resourceVersion":"1"}}`, `{"metadata":[]}`, false, []string{`metadata: Invalid value: []: expected map[string]interface{}, got []interface {}`}},
	} {
		d := parse(t, c.object)
		var before *jsondoc.Doc
		if c.old != "" {
			before = parse(t, c.old)
		}
		list := RootMetadata(d, before, !c.cluster)
		if got := render(list); !slices.Equal(got, c.want) {
			t.Errorf("%.200s:\n%s\nwant\n%s", c.object, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if rootMetadataValid(d, before, !c.cluster) && len(list) > 0 {
			t.Errorf("%.200s: taken for valid", c.object)
		}
	}
}

// TestMetadataOffsets: an error points to the value, or to what it is missing in.
func TestMetadataOffsets(t *testing.T) {
	src := `{"apiVersion":"v1","metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"u"},{"apiVersion":"a/b/c","kind":"A","name":"a"}],"generation":-1}}`
	want := map[string]string{
		"kind":                                   `{"apiVersion":"v1","metadata"`,
		"metadata.ownerReferences[1].apiVersion": `"a/b/c"`,
		"metadata.ownerReferences[1].uid":        `{"apiVersion":"a/b/c"`,
		"metadata.generation":                    `-1`,
	}
	for _, v := range embeddedErrors(parse(t, src), jsondoc.Root, nil) {
		if v.Keyword != "metadata" || v.At != v.Path {
			t.Errorf("%+v", v)
		}
		if start, ok := want[v.Path]; !ok || !strings.HasPrefix(src[v.Offset:], start) {
			t.Errorf("%s points to %.30s", v.Path, src[v.Offset:])
		}
		delete(want, v.Path)
	}
	if len(want) > 0 {
		t.Errorf("no errors about %v", want)
	}
}

// TestMetadataErrorsAreBounded: what is long and what is many do not multiply.
func TestMetadataErrorsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much to do: it runs without the race detector")
	}
	long := strings.Repeat("k", 500_000)
	repeated := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", 20_000), ",") }
	for name, metadata := range map[string]string{
		"many owners":         `{"ownerReferences":[` + repeated(`{}`) + `]}`,
		"many controllers":    `{"ownerReferences":[{"controller":true,"name":"` + long + `"},` + repeated(`{"controller":true}`) + `]}`,
		"a manager of nulls":  `{"managedFields":[{"manager":"` + strings.Repeat(`\u0000`, 100_000) + `"}]}`,
		"many managed fields": `{"managedFields":[` + repeated(`{"operation":"x"}`) + `]}`,
		"many finalizers":     `{"finalizers":["` + long + `",` + repeated(`"!"`) + `]}`,
	} {
		d := parse(t, resource(metadata))
		for _, list := range [][]Violation{
			RootMetadata(d, nil, true), RootMetadata(d, d, true), embeddedErrors(d, jsondoc.Root, nil),
			embeddedErrors(d, jsondoc.Root, path{{kind: keyStep, key: []byte(long)}}),
		} {
			size := 0
			for i := range list {
				size += len(list[i].Error())
			}
			if len(list) == 0 || size > 8*maxViolationBytes {
				t.Errorf("%s: %d errors of %d bytes", name, len(list), size)
			}
		}
	}
}

// TestFewControllers: each error about a second controller repeats the names of the first, so
// apimachinery is shown fewer of them the longer those are.
func TestFewControllers(t *testing.T) {
	const most = 8
	const long = maxViolationBytes/most - 128
	yes, no := true, false
	for others := range most + 3 {
		meta := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{Kind: "NoController", Controller: &no}, {Kind: strings.Repeat("K", long/4), Name: strings.Repeat("n", long-long/4), Controller: &yes}, {Kind: "Other"},
		}}
		for range others {
			meta.OwnerReferences = append(meta.OwnerReferences, metav1.OwnerReference{Kind: "K", Name: "n", Controller: &yes})
		}
		fewControllers(meta)
		got := 0
		for _, owner := range meta.OwnerReferences {
			if owner.Controller == &yes {
				got++
			}
		}
		if want := 1 + min(others, most); got != want {
			t.Errorf("%d more controllers: %d are left, want %d", others, got, want)
		}
	}
}

// TestOneErrorIsKept: an error that is longer than the bound is said nevertheless.
func TestOneErrorIsKept(t *testing.T) {
	at := path{{kind: keyStep, key: []byte(strings.Repeat("k", maxViolationBytes))}}
	list := embeddedErrors(parse(t, `{}`), jsondoc.Root, at)
	if len(list) != 1 || !strings.HasSuffix(list[0].Path, ".apiVersion") {
		t.Errorf("%d errors", len(list))
	}
}

// TestErrorsOfMapsAreInOrder: apimachinery ranges over maps, in another order each time.
func TestErrorsOfMapsAreInOrder(t *testing.T) {
	for name, pair := range map[string]string{"labels": `"k%c":"!%c"`, "annotations": `"!%c%c":""`} {
		var pairs []string
		for c := 'a'; c <= 'z'; c++ {
			pairs = append(pairs, fmt.Sprintf(pair, c, c))
		}
		texts := render(RootMetadata(parse(t, resource(`{"name":"n","`+name+`":{`+strings.Join(pairs, ",")+`}}`)), nil, false))
		if len(texts) != len(pairs) || !slices.IsSorted(texts) {
			t.Errorf("%s: %d errors:\n%s", name, len(texts), strings.Join(texts, "\n"))
		}
	}
}

// metadataMaker makes metadata that is mostly valid.
type metadataMaker struct{ *rand.Rand }

func (m metadataMaker) of(list ...string) string { return list[m.IntN(len(list))] }

func (m metadataMaker) name() string {
	if m.IntN(12) == 0 {
		return m.of(``, `A`, `a..b`, `-a`, `a-`, `.`, `..`, `a/b`, `a%b`, `\u0061`, `ä`, `a_b`, strings.Repeat("a", 64), strings.Repeat("a", 254), `a-.b`, `a.-b`, `a.b-`, `-`, `a--`, "a\xff")
	}
	return m.of(`a`, `a-b`, `a.b`, `0`, `a1.b2-c3`)
}

func (m metadataMaker) key() string {
	if m.IntN(12) == 0 {
		return m.of(``, `a/`, `/a`, `a/b/c`, `A.B/c`, `a_b/c`, `-a`, `a-`, strings.Repeat("b", 64), `K/x`, `a b`)
	}
	return m.of(`a`, `b.c/d`, `B_c.d-e`, `x.y.z/A`)
}

// value makes the JSON of a field, now and then of another type.
func (m metadataMaker) value(t metaType) string {
	if m.IntN(60) == 0 {
		return m.of(`null`, `1`, `"x"`, `{}`, `[]`, `true`, `[null]`, `{"a":null}`, `1.5`, `[{}]`, `{"a":{}}`, `-0`, `1e2`)
	}
	switch t {
	case optionalString, requiredString:
		return `"` + m.of(m.name(), m.name(), "v1", "apps/v1", "/v1", "a/", "Event", "Apply", "FieldsV1", "") + `"`
	case optionalInt, pointerInt:
		return m.of(`0`, `1`, `2`, `30`, `-1`, `9223372036854775807`, `9223372036854775808`)
	case pointerBool:
		return m.of(`true`, `false`)
	case timestamp:
		return m.of(`"2024-01-01T00:00:00Z"`, `"2024-01-01T00:00:00Z"`, `"2024-01-01T01:00:00+01:00"`, `"2024-02-30T00:00:00Z"`, `null`)
	case stringList:
		return `[` + strings.Join(m.some(func() string { return `"` + m.of(m.key(), m.key(), "orphan", "foregroundDeletion") + `"` }), ",") + `]`
	case stringMap:
		seen := map[string]bool{}
		return `{` + strings.Join(m.some(func() string {
			k := m.key()
			for seen[k] {
				k += "x"
			}
			seen[k] = true
			return `"` + k + `":"` + m.of(m.name(), m.key(), `\"x\"`, "") + `"`
		}), ",") + `}`
	case ownerReferences:
		return `[` + strings.Join(m.some(m.owner), ",") + `]`
	case managedFields:
		return `[` + strings.Join(m.some(m.manager), ",") + `]`
	default:
		return m.of(`{}`, `{"f:a":{}}`)
	}
}

func (m metadataMaker) some(f func() string) []string {
	var list []string
	for range m.IntN(3) {
		list = append(list, f())
	}
	return list
}

func (m metadataMaker) owner() string {
	if m.IntN(8) == 0 {
		return m.structure(ownerReferenceStructure, 2)
	}
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","name":"n","uid":"u"%s}`, m.of("v1", "/v1", "apps/v1", "a/", "a/b/c"), m.of("Pod", "Event", "Node"), m.of(``, `,"controller":true`, `,"controller":false`))
}

func (m metadataMaker) manager() string {
	if m.IntN(8) == 0 {
		return m.structure(managedFieldsStructure, 2)
	}
	return fmt.Sprintf(`{"operation":"%s","manager":"%s","fieldsType":"%s","time":"2024-01-01T00:00:00Z","fieldsV1":{}}`,
		m.of("Apply", "Update", "Update", "Update", "Delete"), m.of("m", "kubectl create", "ä", `\n`, strings.Repeat("m", 129)), m.of("FieldsV1", "", "FieldsV2"))
}

// structure has each field with a probability of 1 in oneIn.
func (m metadataMaker) structure(s *structure, oneIn int) string {
	var list []string
	for i := range s.names.Len() {
		if m.IntN(oneIn) == 0 {
			list = append(list, `"`+s.names.At(i).Name+`":`+m.value(s.types[i]))
		}
	}
	if m.IntN(40) == 0 {
		list = append(list, `"unknown":{}`)
	}
	m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return `{` + strings.Join(list, ",") + `}`
}

func (m metadataMaker) object() string {
	if m.IntN(30) == 0 {
		return m.of(`{}`, `{"metadata":null}`, `{"metadata":1}`, `{"metadata":[]}`, `{"apiVersion":"v1"}`)
	}
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"%s","metadata":%s}`, m.of("v1", "a/b", "/", "a/b/c", ""), m.of("Pod", "A-b", "1x", "x.y", "X-", "", "ÄK"), m.structure(objectMetaStructure, 4))
}

// change makes an update of the object: some fields as before, others not.
func (m metadataMaker) change(object string) string {
	for range m.IntN(3) {
		from, to := m.of(`"a"`, `:1`, `2024-01-01`, `"generation":2`, `"b.c/d"`, `"name":`), m.of(`"a"`, `"b"`, `:2`, `2024-01-02`, `"name":`)
		object = strings.Replace(object, from, to, 1)
	}
	return object
}

func TestFastMetadataAgainstSlow(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much to do: it runs without the race detector")
	}
	m := metadataMaker{rand.New(rand.NewPCG(7, 11))}
	var fast, valid [3]int
	for range 15_000 {
		src := m.object()
		d, err := jsondoc.Parse([]byte(src), jsondoc.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		next := m.change(src)
		if m.IntN(4) > 0 {
			next = strings.Replace(next, `"metadata":{`, `"metadata":{"resourceVersion":"7",`, 1)
			if strings.Count(next, `"resourceVersion"`) > 1 {
				next = src
			}
		}
		u, err := jsondoc.Parse([]byte(next), jsondoc.Limits{})
		if err != nil {
			u = d
		}
		for i, ok := range agreement(t, d, u) {
			if ok&1 != 0 {
				fast[i]++
			}
			if ok&2 != 0 {
				valid[i]++
			}
		}
	}
	for i, name := range []string{"embedded", "create", "update"} {
		if fast[i] < 200 || fast[i] < valid[i]/2 {
			t.Errorf("%s: of %d valid ones %d were fast", name, valid[i], fast[i])
		}
		t.Logf("%s: of %d valid ones %d were fast", name, valid[i], fast[i])
	}
}

// agreement checks that what is taken for valid is so: as an embedded
// resource, as a new object, and as a change of another. Bit 0 is the fast
// result, bit 1 the slow one.
func agreement(t testing.TB, d, next *jsondoc.Doc) (results [3]uint8) {
	t.Helper()
	check := func(i int, what string, fast bool, errs []Violation) {
		if fast && len(errs) > 0 {
			t.Fatalf("%s of %s (from %s) is taken for valid, but %v", what, next.Raw(jsondoc.Root), d.Raw(jsondoc.Root), render(errs))
		}
		if fast {
			results[i] |= 1
		}
		if len(errs) == 0 {
			results[i] |= 2
		}
	}
	for _, namespaced := range []bool{true, false} {
		check(1, "creation", rootMetadataValid(next, nil, namespaced), RootMetadata(next, nil, namespaced))
		check(2, "update", rootMetadataValid(next, d, namespaced), RootMetadata(next, d, namespaced))
	}
	likeUpstream(t, d, next)
	check(0, "embedding", embeddedValid(next, jsondoc.Root), embeddedErrors(next, jsondoc.Root, nil))
	return results
}

// likeUpstream: generated rules change nothing but the number of times that an
// error is said. Should this fail with a new version of apimachinery, some of
// the rules are beta, and RootMetadata and embeddedErrors have to run them.
func likeUpstream(t testing.TB, d, next *jsondoc.Doc) {
	t.Helper()
	meta, fault := rootMeta(next)
	before, oldFault := rootMeta(d)
	if fault != nil || oldFault != nil {
		return
	}
	compare := func(got []Violation, errs field.ErrorList) {
		var want []string
		for _, e := range errs {
			want = append(want, e.Error())
		}
		texts := render(got)
		slices.Sort(texts)
		slices.Sort(want)
		if !slices.Equal(texts, want) {
			t.Fatalf("%s (from %s):\n%s\nwant\n%s", next.Raw(jsondoc.Root), d.Raw(jsondoc.Root), strings.Join(texts, "\n"), strings.Join(want, "\n"))
		}
	}
	at := field.NewPath("metadata")
	compare(RootMetadata(next, nil, true), validation.ValidateObjectMetaDeclaratively(t.Context(), operation.Create, meta, nil, true, validation.NameIsDNSSubdomain, at, true))
	compare(RootMetadata(next, d, true), validation.ValidateObjectMetaDeclaratively(t.Context(), operation.Update, meta, before, true, nil, at, true))
}

// FuzzMetadata: no input panics, and what the fast check takes for valid is.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(resource(ordinary)), []byte(resource(ordinary)))
	f.Add([]byte(`{}`), []byte(`{"metadata":{"name":"a","generateName":"a--","annotations":{"A.b/c":"\ud800"}}}`))
	f.Add([]byte(`{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z","finalizers":["a"]}}`), []byte(`{"metadata":{"resourceVersion":"1","finalizers":["a","b"]}}`))
	m := metadataMaker{rand.New(rand.NewPCG(1, 2))}
	for range 20 {
		f.Add([]byte(m.object()), []byte(m.object()))
	}
	f.Fuzz(func(t *testing.T, old, object []byte) {
		d, ok := canonicalDoc(t, old)
		if !ok {
			return
		}
		next, ok := canonicalDoc(t, object)
		if !ok {
			return
		}
		agreement(t, d, next)
		for _, v := range embeddedErrors(next, jsondoc.Root, path{{key: []byte("x")}}) {
			if v.Type == "" || v.Path == "" || v.Offset < 0 || v.Offset > next.End(jsondoc.Root) || v.Type == field.ErrorTypeInternal {
				t.Fatalf("%+v", v)
			}
		}
	})
}

// canonicalDoc parses bytes as they are after normalization, which leaves no
// duplicate keys.
func canonicalDoc(t *testing.T, src []byte) (*jsondoc.Doc, bool) {
	d, err := jsondoc.Parse(src, jsondoc.Limits{})
	if err != nil {
		return nil, false
	}
	defer d.Release()
	return parse(t, string(d.AppendCanonical(nil, jsondoc.Root))), true
}
