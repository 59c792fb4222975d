package request_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// preserving is a resource with a scale whose objects have any fields.
func preserving(t *testing.T) (*request.Resource, *request.Schema) {
	t.Helper()
	selector := ".status.selector"
	v := &crd.Version{
		Name: "v1", Schema: []byte(`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
			"t":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"n":{"type":"integer"}}}}}`),
		Scale: &crd.Scale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: &selector},
	}
	s, err := request.Compile(v, false)
	if err != nil {
		t.Fatal(err)
	}
	return request.New(&crd.CRD{Group: "example.com", Names: crd.Names{Kind: "Widget"}, Namespaced: true}, v), s
}

func TestValuesOfAScale(t *testing.T) {
	r, s := preserving(t)
	for members, want := range map[string]string{
		`"spec":{"replicas":0},"status":{"replicas":2147483647,"selector":"a=b"}`: "",
		`"spec":{"replicas":2147483648},"status":{"replicas":-1}`: ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647\n" +
			".status.replicas: Invalid value: -1: should be a non-negative integer",
		`"spec":{"replicas":"x"},"status":{"selector":5}`: ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64\n" +
			`.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string`,
		`"spec":{}`: "",
	} {
		o := decoded(t, s, members)
		o.SetNamespace("d")
		found, err := r.Validate(s, o, request.Options{})
		if got := texts(&found); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", members, err, got, want)
		}
	}
	o := decoded(t, s, `"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}`)
	n, found, err := r.Scale.Desired(o)
	actual, failed := r.Scale.Actual(o)
	selector, wrong := r.Scale.LabelSelector(o)
	if n != 3 || !found || err != nil || actual != 2 || failed != nil || selector != "a=b" || wrong != nil {
		t.Errorf("%d %v %v, %d %v, %q %v", n, found, err, actual, failed, selector, wrong)
	}
	if n, found, err := r.Scale.Desired(decoded(t, s, `"spec":{}`)); n != 0 || found || err != nil {
		t.Errorf("no replicas: %d %v %v", n, found, err)
	}
	if selector, err := (&request.Scale{}).LabelSelector(o); selector != "" || err != nil {
		t.Errorf("no path: %q %v", selector, err)
	}
	if request.NewScale(nil) != nil || *request.NewScale(&crd.Scale{SpecReplicasPath: "a", StatusReplicasPath: "b"}) != (request.Scale{SpecReplicas: "a", StatusReplicas: "b"}) {
		t.Error("the paths are others")
	}
}

func TestSetReplicas(t *testing.T) {
	for _, c := range []struct{ before, path, after, err string }{
		{`{"spec":{"b":1,"a":{"x":"<"}}}`, ".spec.a.n", `{"spec":{"a":{"n":5,"x":"<"},"b":1}}`, ""},
		{`{}`, ".spec.a.n", `{"spec":{"a":{"n":5}}}`, ""},
		{`{"spec":{"a":7}}`, ".spec.a", `{"spec":{"a":5}}`, ""},
		{`{"spec":{"a":7}}`, ".spec.a.n", "", "value cannot be set because .spec.a is not a map[string]interface{}"},
		{`{"spec":[]}`, ".spec.a.n", "", "value cannot be set because .spec is not a map[string]interface{}"},
	} {
		var o object.Object
		if err := o.UnmarshalJSON([]byte(c.before)); err != nil {
			t.Fatal(err)
		}
		before := string(o.JSON())
		err := (&request.Scale{SpecReplicas: c.path}).SetDesired(&o, 5)
		if c.err != "" {
			if err == nil || err.Error() != c.err || string(o.JSON()) != before {
				t.Errorf("%s: %v, %s", c.before, err, o.JSON())
			}
			continue
		}
		if got := strings.ReplaceAll(string(o.Member("spec")), `\u003c`, "<"); err != nil || `{"spec":`+got+`}` != c.after {
			t.Errorf("%s: %v, %s", c.before, err, o.JSON())
		}
	}
}

// API servers look at the values and the metadata of the object, then at the scale, then at embedded resources.
func TestOrderOfProblems(t *testing.T) {
	r, s := preserving(t)
	o := decoded(t, s, `"spec":{"replicas":-1,"n":"x","t":{"apiVersion":"v1","kind":"K","metadata":{"name":"A/B"}}}`)
	o.SetName("A/B")
	o.SetNamespace("d")
	found, err := r.Validate(s, o, request.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range found.Problems {
		order = append(order, p.Error.Field)
	}
	if got := strings.Join(order, " "); got != "metadata.name spec.n .spec.replicas spec.t.metadata.name" {
		t.Errorf("%s\n%s", got, texts(&found))
	}
}

// CRDs that do not prune need not have a structural schema.
func TestSchemasThatPreserve(t *testing.T) {
	for _, c := range []struct {
		schema   string
		preserve bool
		spec     string // what becomes of {"a":9}
		want     string
	}{
		{`{"type":"object","properties":{"spec":{"properties":{"a":{"maximum":5}}}}}`, true, `{"a":9}`, "spec.a: Invalid value: 9: spec.a in body should be less than or equal to 5"},
		{`{"type":"object","properties":{"spec":{"type":"object","properties":{"b":{"type":"integer","default":1}}}}}`, true, `{"a":9}`, ""},
		{`{"type":"object","properties":{"spec":{"type":"object","properties":{"b":{"type":"integer","default":1}}}}}`, false, `{"b":1}`, ""},
		{"", true, `{"a":9}`, ""},
		{"", false, ``, ""},
	} {
		v := &crd.Version{Name: "v1"}
		if c.schema != "" {
			v.Schema = []byte(c.schema)
		}
		s, err := request.Compile(v, c.preserve)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		o := decoded(t, s, `"spec":{"a":9}`)
		if got := string(o.Member("spec")); got != c.spec {
			t.Errorf("%s: %s", c.schema, got)
		}
		o.SetNamespace("d")
		r := request.New(&crd.CRD{Group: "example.com", Names: crd.Names{Kind: "Widget"}, Namespaced: true}, v)
		found, err := r.Validate(s, o, request.Options{})
		if got := texts(&found); err != nil || got != c.want {
			t.Errorf("%s: %v, %s", c.schema, err, got)
		}
	}
	if _, err := request.Compile(&crd.Version{Name: "v1", Schema: []byte(`{"properties":{"a":{}}}`)}, false); err == nil {
		t.Error("a schema that is not structural compiles")
	}
}

// A status that becomes null is a change, unless it is the status alone that is written.
func TestNullStatusOfObjects(t *testing.T) {
	v := &crd.Version{Name: "v1", Schema: []byte(`{"type":"object","properties":{"status":{"type":"object"}}}`)}
	s, err := request.Compile(v, true)
	if err != nil {
		t.Fatal(err)
	}
	r := request.New(&crd.CRD{Group: "example.com", Names: crd.Names{Kind: "Widget"}, Namespaced: true}, v)
	old, o := decoded(t, s, `"spec":{}`), decoded(t, s, `"status":null`)
	r.Update(o, old, request.Object, "d")
	found, err := r.Validate(s, o, request.Options{Old: old})
	if got := texts(&found); err != nil || !strings.HasPrefix(got, `status: Invalid value: "null"`) {
		t.Errorf("%v: %s", err, got)
	}
}

// Rules and fields that are only read look at the old values, too.
func TestOldValuesCount(t *testing.T) {
	r, s := gadget(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf","message":"shrinks"}]}}}}}`)
	old, o := decoded(t, s, `"spec":{"n":2}`), decoded(t, s, `"spec":{"n":1}`)
	r.Update(o, old, request.Object, "d")
	found, err := r.Validate(s, o, request.Options{Old: old})
	if got := texts(&found); err != nil || got != "spec.n: Invalid value: 1: shrinks" {
		t.Errorf("%v: %s", err, got)
	}
	r, s = gadget(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","readOnly":true}}}}}`)
	old, o = decoded(t, s, `"spec":{"n":2}`), decoded(t, s, `"spec":{"n":1}`)
	r.Update(o, old, request.Object, "d")
	for _, look := range []bool{false, true} {
		found, err := r.Validate(s, o, request.Options{Old: old, ReadOnly: look})
		if err != nil || (len(found.ReadOnly) == 1) != look || len(found.Problems) > 0 {
			t.Errorf("%v: %+v", err, found)
		}
	}
}

// Details that begin with a quoted path name the field as it is called in the status.
func TestQuotedPathsInTheStatus(t *testing.T) {
	r, s := gadget(t, `{"type":"object","properties":{"status":{"type":"object","properties":{"a":{"type":"integer","anyOf":[{"minimum":5},{"minimum":6}]}}}}}`)
	got := writeStatus(t, r, s, "}", `{"a":3}`)
	if !strings.Contains(got, `: "a" must validate at least one schema (anyOf)`) || strings.Contains(got, `"status.a"`) {
		t.Error(got)
	}
}

// An object that moves to another version has changed.
func TestGenerationOfOtherVersions(t *testing.T) {
	r, s := gadget(t, `{"type":"object","properties":{"spec":{"type":"object"}}}`)
	for members, want := range map[string]int64{
		`"apiVersion":"example.com/v1","kind":"Widget"`: 4, `"apiVersion":"example.com/v2","kind":"Widget"`: 5, `"apiVersion":"example.com/v1","kind":"Other"`: 5,
	} {
		old, err := request.DecodeForeign([]byte(`{` + members + `,"metadata":{"name":"a","generation":4},"spec":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		o := decoded(t, s, `"spec":{}`)
		r.Update(o, old, request.Object, "d")
		if o.GetGeneration() != want {
			t.Errorf("%s: %d", members, o.GetGeneration())
		}
	}
	old, o := decoded(t, s, `"spec":{}`), decoded(t, s, `"spec":{}`)
	r.Update(o, old, request.Object, "d")
	o.SetName("b")
	if errs := r.UpdateErrors(o, old); len(errs) == 0 || errs[0].Field != "metadata.name" {
		t.Error(errs)
	}
}
