package offline

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Errors say where the value is and which type it must have, also where the decoder does
// not say where.
func TestDecodeTypes(t *testing.T) {
	for _, c := range []struct{ group, kind, text, at, typ string }{
		{"", "Pod", `{"spec":{"priority":"5"}}`, `"5"`, "integer"},
		{"", "Pod", `{"spec":{"hostNetwork":"x"}}`, `"x"`, "boolean"},
		{"", "Pod", `{"spec":{"nodeName":7}}`, `7`, "string"},
		{"", "Pod", `{"spec":{"containers":[{"name":"a"},{"name":"b","ports":[{"containerPort":"x"}]}]}}`, `"x"`, "integer"},
		{"", "Pod", `{"spec":{"containers":7}}`, `7`, ""},
		{"", "Pod", `{"metadata":{"creationTimestamp":"x"}}`, `"x"`, ""},
		{"", "Pod", `{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z","deletionTimestamp":"y"}}`, `"y"`, ""},
		{"", "Secret", `{"data":{"a":"YQ==","b":"!"}}`, `"!"`, ""},
		{"apps", "Deployment", `{"spec":{"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"1","memory":"x"}}}]}}}}`, `"x"`, ""},
	} {
		k := mustFind(t, c.group, "v1", c.kind)
		_, _, err := k.Decode([]byte(c.text), Latest)
		var e *DecodeError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if e.Type != c.typ || e.Offset != strings.LastIndex(c.text, c.at) || e.Kind != k || e.Unwrap() == nil {
			t.Errorf("%s: type %q, at %d: %v", c.text, e.Type, e.Offset, e)
		}
	}
}

// What the object says that it is comes before what it is.
func TestDecodeKinds(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	for text, want := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1"}`:     "",
		`{"kind":"Other"}`:                     "",
		`{"apiVersion":"v1"}`:                  "",
		`{"kind":"Other","apiVersion":"v1"}`:   `Other in version "v1" cannot be handled as a Pod: no kind "Other" is registered for version "v1"`,
		`{"kind":"Pod","apiVersion":"a/v1"}`:   `Pod in version "v1" cannot be handled as a Pod: no kind "Pod" is registered for version "a/v1"`,
		`{"kind":7}`:                           `the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error:`,
		`{"kind":"Pod","apiVersion":"a/b/c"}`:  `the object provided is unrecognized (must be of type Pod): unexpected GroupVersion string: a/b/c`,
		`{"kind":"Pod","apiVersion":"v1"`:      `the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error:`,
		`{"spec":{"containers":[{"name":7}]}}`: `Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number`,
	} {
		_, _, err := pod.Decode([]byte(text), Latest)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Misspelt fields have a suggestion where the struct that they are in is known.
func TestNearest(t *testing.T) {
	for _, c := range []struct{ text, path, nearest string }{
		{`{"spce":{}}`, "spce", "spec"},
		{`{"metadata":{"lables":{}}}`, "metadata.lables", "labels"},
		{`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"prt":1}}}]}}`, "spec.containers[0].livenessProbe.httpGet.prt", "port"},
		{`{"spec":{"zzzzzz":1}}`, "spec.zzzzzz", ""},
		{`{"apiversion":"v1"}`, "apiversion", "apiVersion"},
	} {
		_, strict, err := mustFind(t, "", "v1", "Pod").Decode([]byte(c.text), Latest)
		if err != nil || len(strict) != 1 || strict[0].Path != c.path || strict[0].Nearest != c.nearest || !strict[0].Unknown {
			t.Errorf("%s: %v %v", c.text, strict, err)
		}
	}
}

// Fields that later versions have added are unknown to older ones, at any depth.
func TestNewerFields(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	const text = `{"spec":{"hostnameOverride":"x","containers":[{"name":"a"},{"restartPolicyRules":[{"action":"Restart"}]}]}}`
	for version, want := range map[Version]string{
		Latest: "", 34: "", 33: "spec.hostnameOverride 1.34; spec.containers[1].restartPolicyRules 1.34",
	} {
		_, strict, err := pod.Decode([]byte(text), version)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range strict {
			got = append(got, e.Path+" "+e.Since)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q", version, got)
		}
	}
	slice := mustFind(t, "resource.k8s.io", "v1", "ResourceSlice")
	_, strict, err := slice.Decode([]byte(`{"spec":{"devices":[{"name":"d","attributes":{"a":{"bool":true},"b":{"bools":[true]}}}]}}`), 35)
	if err != nil || len(strict) != 1 || strict[0].Path != "spec.devices[0].attributes.b.bools" || strict[0].Since != "1.36" {
		t.Errorf("a field of values of a map: %v, %v", strict, err)
	}
	// What holds any JSON has no fields, also if it is a list.
	for _, text := range []string{`{"data":[{"a":1}],"revision":1}`, `{"data":{"a":[1]},"revision":1}`} {
		if _, strict, err := mustFind(t, "apps", "v1", "ControllerRevision").Decode([]byte(text), Oldest); err != nil || len(strict) > 0 {
			t.Errorf("%s: %v, %v", text, strict, err)
		}
	}
}

// Fields that JSON leaves out have no name in it.
func TestFieldsOf(t *testing.T) {
	type Inlined struct {
		B string `json:"b"`
	}
	type all struct {
		Inlined `json:",inline"`
		A       string `json:"a,omitempty"`
		Hidden  string `json:"-"`
	}
	if got := namesOf(reflect.TypeFor[all]()); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

// Changes through the status endpoint, of metadata, and of what must not change.
func TestUpdates(t *testing.T) {
	const spec = `"spec":{"selector":{"matchLabels":{"a":"x"}},"template":{"metadata":{"labels":{"a":"x"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}`
	for _, c := range []struct{ group, kind, old, now, subresource, want string }{
		{"apps", "Deployment", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},` + spec + `}`, `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},` + spec + `,"status":{"replicas":-1}}`, "", ""},
		{"apps", "Deployment", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},` + spec + `}`, `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},` + spec + `,"status":{"replicas":-1}}`, "status",
			`status.replicas: Invalid value: -1: must be greater than or equal to 0`},
		{"", "ConfigMap", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"immutable":true,"data":{"a":"b"}}`, `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"immutable":true,"data":{"a":"c"}}`, "",
			"data: Forbidden: field is immutable when `immutable` is set"},
		{"", "ConfigMap", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"}}`, `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1","finalizers":["x"]}}`, "",
			`metadata.finalizers[0]: Invalid value: "x"`},
		{"apps", "Deployment", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},` + spec + `}`, `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1","finalizers":["x"]},` + spec + `}`, "",
			`metadata.finalizers[0]: Invalid value: "x"`},
		// A status is written beside finalizers that may be older than the rule.
		{"", "ResourceQuota", `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1","finalizers":["x"]}}`, `{"metadata":{"name":"a","namespace":"n","resourceVersion":"1","finalizers":["x"]},"status":{}}`, "status", ""},
	} {
		k := mustFind(t, c.group, "v1", c.kind)
		got := told(k.Update(decoded(t, k, c.now), decoded(t, k, c.old), c.subresource, "n"))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s\nexpected: %s", c.now, c.subresource, got, c.want)
		}
	}
}
