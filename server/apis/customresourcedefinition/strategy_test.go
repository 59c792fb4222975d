package customresourcedefinition

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
)

// through is the context of a request to a version.
func through(version string) context.Context {
	return request.WithRequestInfo(context.Background(), &request.RequestInfo{APIVersion: version})
}

// refusals returns the errors of a CRD that is created, or takes
// the place of old.
func refusals(ctx context.Context, o, old *object.Object) string {
	s := strategy{}
	o = o.DeepCopy()
	if old == nil {
		s.PrepareForCreate(ctx, o)
		return said(s.Validate(ctx, o))
	}
	o.SetResourceVersion("1")
	o.SetUID(old.GetUID())
	s.PrepareForUpdate(ctx, o, old)
	return said(s.ValidateUpdate(ctx, o, old))
}

// kept returns a CRD as it is stored after it was created.
func kept(ctx context.Context, tb testing.TB, text string) *object.Object {
	tb.Helper()
	o := sent(tb, text)
	strategy{}.PrepareForCreate(ctx, o)
	o.SetResourceVersion("1")
	return o
}

func edited(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// annotated is a CRD with conversion rules that name a version that it has not.
var annotated = edited(widgets, "{name: widgets.example.com}", `{name: widgets.example.com, annotations: {conversion.espalier.dev/rules: "conversions: [{between: [v1, v2]}]"}}`)

// indexing is a CRD that declares an index of a field that is not selectable.
var indexing = edited(widgets, "{name: widgets.example.com}", `{name: widgets.example.com, annotations: {espalier.dev/indexes: "label:team, field:spec.color"}}`)

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, text, old, want string }{
		{"name", edited(widgets, "name: widgets.example.com", "name: gadgets.example.com"), "",
			`metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group`},
		{"scope", edited(widgets, "Namespaced", "Galaxy"), "", `spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"`},
		{"structure", edited(widgets, "type: integer, default: 3", "minimum: 1"), "",
			`spec.validation.openAPIV3Schema.properties[spec].properties[size].type: Required value: must not be empty for specified object fields`},
		{"storage", edited(widgets, "storage: true", "storage: false"), "", `must have exactly one version marked as storage version`},
		{"protected", edited(widgets, "example.com", "widgets.k8s.io"), "",
			`metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`},
		{"preserve", edited(widgets, "  scope:", "  preserveUnknownFields: true\n  scope:", ", default: 3", ""), "",
			`spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead`},
		{"no schema", widgets[:strings.Index(widgets, "    schema:")], "", `spec.versions[0].schema.openAPIV3Schema: Required value`},
		{"conversion rules", annotated, "", `metadata.annotations[conversion.espalier.dev/rules]: Invalid value: "": conversions[0]: the CRD has no version "v2"`},
		{"new conversion rules", edited(annotated, "[wg]", "[w]"), widgets, `metadata.annotations[conversion.espalier.dev/rules]: Invalid value: "": conversions[0]: the CRD has no version "v2"`},
		{"conversion rules of before", edited(annotated, "[wg]", "[w]"), annotated, ""},
		{"indexes", indexing, "", `metadata.annotations[espalier.dev/indexes]: Invalid value: "label:team, field:spec.color": "spec.color" is not a selectable field: add jsonPath ".spec.color" to selectableFields of a version`},
		{"new indexes", edited(indexing, "[wg]", "[w]"), widgets, `metadata.annotations[espalier.dev/indexes]: Invalid value`},
		{"indexes of before", edited(indexing, "[wg]", "[w]"), indexing, ""},
		{"indexes of labels", edited(indexing, ", field:spec.color", "", "[wg]", "[w]"), widgets, ""},
		{"group", edited(widgets, "example.com", "example.org"), widgets, `spec.group: Invalid value: "example.org": field is immutable`},
		{"stored", edited(widgets, "name: v1", "name: v2"), widgets,
			`status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := through("v1")
			var old *object.Object
			if c.old != "" {
				old = kept(ctx, t, c.old)
			}
			if got := refusals(ctx, sent(t, c.text), old); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPreparing(t *testing.T) {
	ctx, s := through("v1"), strategy{}
	o := sent(t, widgets+"status: {storedVersions: [v9], conditions: [{type: Established, status: 'True'}]}\n")
	s.PrepareForCreate(ctx, o)
	if got := string(o.Member("status")); got != `{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}` || o.GetGeneration() != 1 {
		t.Errorf("%s, generation %d", got, o.GetGeneration())
	}
	same := sent(t, widgets)
	same.SetGeneration(1)
	s.PrepareForUpdate(ctx, same, o)
	if same.GetGeneration() != 1 || string(same.Member("status")) != string(o.Member("status")) {
		t.Errorf("nothing changed, but: %d %s", same.GetGeneration(), same.Member("status"))
	}
	next := sent(t, edited(widgets, "storage: true", "storage: false")+"  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n")
	s.PrepareForUpdate(ctx, next, o)
	if got := string(next.Member("status")); !strings.HasSuffix(got, `"storedVersions":["v1","v2"]}`) || next.GetGeneration() != 2 {
		t.Errorf("%s, generation %d", got, next.GetGeneration())
	}
	stat := sent(t, edited(widgets, "Namespaced", "Cluster")+"status: {storedVersions: [v1, v2]}\n")
	statusStrategy{}.PrepareForUpdate(ctx, stat, o)
	if !stat.SameBody(o, "status") || !strings.HasSuffix(string(stat.Member("status")), `["v1","v2"]}`) {
		t.Errorf("%s", stat.JSON())
	}
}

func TestWarningsAreUpstreamsAndNoOthers(t *testing.T) {
	ctx, s := through("v1"), strategy{}
	text := edited(widgets, "size: {type: integer, default: 3}",
		"a: {type: string, format: blue}, b: {type: string, format: blue}, c: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}}, d: {type: string, enum: [1]}")
	want := []string{
		`unrecognized format "blue"`,
		`x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules`,
	}
	o := kept(ctx, t, text)
	if got := s.WarningsOnCreate(ctx, o); !slices.Equal(got, want) {
		t.Errorf("before validation: %q", got)
	}
	if errs := s.Validate(ctx, o); len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := s.WarningsOnCreate(ctx, o); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := s.WarningsOnUpdate(ctx, kept(ctx, t, text), o); len(got) > 0 {
		t.Errorf("warned again: %q", got)
	}
	if got := s.WarningsOnUpdate(ctx, kept(ctx, t, text), kept(ctx, t, widgets)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestStatusIsCheckedByItself(t *testing.T) {
	ctx := through("v1")
	old := kept(ctx, t, gadgets) // v1 would not accept its spec
	o := old.DeepCopy()
	status, err := crdcontroller.StatusOf(o)
	if err != nil {
		t.Fatal(err)
	}
	status.AcceptedNames.Plural = "gadgets"
	crdcontroller.SetStatus(o, status)
	if errs := (statusStrategy{}).ValidateUpdate(ctx, o, old); len(errs) > 0 {
		t.Error(errs)
	}
	status.AcceptedNames.Kind, status.AcceptedNames.ListKind = "Same", "Same"
	status.AcceptedNames.Plural = "UPPER"
	crdcontroller.SetStatus(o, status)
	errs := (statusStrategy{}).ValidateUpdate(ctx, o, old)
	if len(errs) != 2 || errs[0].Error() != `status.acceptedNames.listKind: Invalid value: "Same": kind and listKind may not be the same` ||
		!strings.HasPrefix(errs[1].Error(), `status.acceptedNames.plural: Invalid value: "UPPER": a DNS-1035 label must consist of`) {
		t.Error(errs)
	}
}

// schemaOf returns gadgets with another schema.
func schemaOf(schema string, more ...string) string {
	return edited(gadgets, append([]string{"{properties: {spec: {properties: {size: {minimum: 1}}}}}", schema}, more...)...)
}

func TestOptingInWithBeta(t *testing.T) {
	pruning := []string{"  version: v1", "  preserveUnknownFields: false\n  version: v1"}
	two := "  versions: [{name: v1, served: true, storage: true}, {name: v2, served: true, storage: false}, {name: v3, served: false, storage: false}]\n"
	none := gadgets[:strings.Index(gadgets, "  validation:")]
	for _, c := range []struct{ name, text, old, want string }{
		{"not structural", gadgets, "", ""},
		{"no schema", none, "", ""},
		{"unknown types", schemaOf("{properties: {a: {type: any}}}"), "", ""},
		{"not structural, but pruning", edited(gadgets, pruning...), "",
			"spec.validation.openAPIV3Schema.properties[spec].properties[size].type: Required value: must not be empty for specified object fields"},
		{"structural and pruning", edited(widgets, "/v1", "/v1beta1", ", default: 3", "", "  scope:", "  preserveUnknownFields: false\n  scope:", "    schema:", "  validation:", "      openAPI", "    openAPI"), "", ""},
		{"pruning without schema", edited(none, pruning...) + two, "",
			"spec.versions[1].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned"},
		{"not structural, but a new feature", schemaOf("{properties: {a: {x-kubernetes-int-or-string: true}, b: {}}}"), "",
			"spec.validation.openAPIV3Schema.properties[b].type: Required value"},
		{"not structural, but unions", schemaOf("{properties: {b: {}}, x-kubernetes-unions: [{fields: {b: ''}}]}"), "",
			"spec.validation.openAPIV3Schema.properties[b].type: Required value"},
		{"defaults without pruning", schemaOf("{type: object, properties: {a: {type: string, default: b}}}"), "",
			"spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"},
		{"not supported all the same", schemaOf("{$ref: '#/a'}"), "", "spec.validation.openAPIV3Schema.$ref: Forbidden: $ref is not supported"},
		{"both places", edited(gadgets, "  version: v1", "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]"), "",
			"spec.validation: Forbidden: top-level and per-version schemas are mutually exclusive"},
		{"the same in each", none + "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n", "",
			"per-version schemas may not all be set to identical values (top-level validation should be used instead)"},
		{"version", gadgets + "  versions: [{name: v2, served: true, storage: true}]\n", "", `spec.version: Invalid value: "v1": must match the first version in spec.versions`},
		{"back to not structural", gadgets, edited(widgets, "widget", "gadget", "Widget", "Gadget", ", default: 3", ""), ""},
		{"a change of what was not structural", schemaOf("{properties: {a: {}}}"), gadgets, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := through("v1beta1")
			var old *object.Object
			if c.old != "" {
				old = kept(ctx, t, c.old)
			}
			got := refusals(ctx, sent(t, c.text), old)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWhatIsNotStructuralStaysChangeableInV1(t *testing.T) {
	ctx := through("v1")
	old := kept(ctx, t, gadgets)
	next := old.DeepCopy()
	next.SetLabels(map[string]string{"a": "b"})
	if got := refusals(ctx, next, old); got != "" {
		t.Error(got)
	}
	if got := refusals(ctx, old, nil); !strings.Contains(got, "cannot set to true") || !strings.Contains(got, "must not be empty at the root") {
		t.Errorf("created in v1: %s", got)
	}
}

func said(errs field.ErrorList) string {
	var b strings.Builder
	for _, e := range errs {
		b.WriteString(e.Error() + "\n")
	}
	return b.String()
}
