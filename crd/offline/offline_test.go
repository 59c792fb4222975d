package offline

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/costtest"
)

func mustFind(t *testing.T, group, version, kind string) *Kind {
	t.Helper()
	k := Find(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	if k == nil {
		t.Fatalf("there is no kind %s", kind)
	}
	return k
}

// Every kind has a Go type, a rule for names, and survives an empty object.
func TestAll(t *testing.T) {
	all := All()
	if len(all) < 60 {
		t.Errorf("there are %d kinds, fewer than 60", len(all))
	}
	for _, k := range all {
		if k.name == nil {
			t.Errorf("%s has no rule for names", k.GroupVersionKind)
			continue
		}
		if since := k.Since(); since < Oldest || since > Latest {
			t.Errorf("%s exists since %s", k.GroupVersionKind, since)
		}
		obj, strict, err := k.Decode([]byte(`{"metadata":{}}`), Latest)
		if err != nil || len(strict) > 0 {
			t.Errorf("%s: %v %v", k.GroupVersionKind, strict, err)
			continue
		}
		if answer := k.Create(obj, "default"); len(answer.Errors) == 0 && k.Kind != "LimitRange" { // servers give it a name
			t.Errorf("%s: an object without a name is valid", k.GroupVersionKind)
		}
	}
}

// versions.json names types and fields that exist.
func TestVersionsExist(t *testing.T) {
	types := map[string]reflect.Type{}
	var collect func(reflect.Type)
	collect = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || types[typeKey(of)] != nil {
			return
		}
		types[typeKey(of)] = of
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				collect(of.Field(i).Type)
			}
		}
	}
	for version := range packages {
		for _, one := range scheme(version).KnownTypes(version) {
			collect(one)
		}
	}
	found := 0
	for name, fields := range since() {
		of := types[name]
		if of == nil {
			continue // of a group whose kinds are not stored, or a type that only other versions refer to
		}
		found++
		for field := range fields {
			if field != "" && fieldsOf(of)[field] == nil {
				t.Logf("%s has no field %s: a later version has removed it", name, field)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d types of versions.json exist, fewer than 20", found)
	}
}

func TestDecode(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	for _, test := range []struct{ name, json, at, want string }{
		{"a string for a number", `{"spec":{"priority":"5"}}`, `"5"`, `Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32`},
		{"an object for a list", `{"spec":{"containers":{"a":1}}}`, `{"a":1}`, `Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container`},
		{"a list for a string", `{"metadata":{"name":"x"},"spec":{"nodeName":["x"]}}`, `["x"]`, `Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal array into Go struct field PodSpec.spec.nodeName of type string`},
		{"a quantity after lists of objects that are expected to be objects", `{"spec":{"securityContext":[{"x":"y"},{}],"containers":[{"resources":{"limits":{"memory":"1x"}}}],"affinity":[1]}}`, `"1x"`, `Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
		{"a quantity", `{"spec":{"containers":[{"resources":{"limits":{"cpu":"1","memory":"1x"}}}]}}`, `"1x"`, `Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := pod.Decode([]byte(test.json), Latest)
			var e *DecodeError
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Error() != test.want {
				t.Errorf("got  %s\nwant %s", e, test.want)
			}
			if want := strings.Index(test.json, test.at); e.Offset != want {
				t.Errorf("at %d, want %d: %s", e.Offset, want, test.json[e.Offset:])
			}
		})
	}
}

func TestFields(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	text := []byte(`{"spec":{"containers":[{"imge":"x","name":"a","name":"b"}],"hostnameOverride":"x"},"zzzz":1}`)
	for _, test := range []struct {
		version Version
		want    []string
	}{
		{Latest, []string{`unknown field "spec.containers[0].imge" image`, `duplicate field "spec.containers[0].name" `, `unknown field "zzzz" `}},
		{33, []string{`unknown field "spec.containers[0].imge" image`, `duplicate field "spec.containers[0].name" `, `unknown field "zzzz" `, `unknown field "spec.hostnameOverride" 1.34`}},
	} {
		_, strict, err := pod.Decode(text, test.version)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range strict {
			got = append(got, e.Error()+" "+e.Nearest+e.Since)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", test.version, got, test.want)
		}
	}
}

// Servers find the version in keys of any case.
func TestOtherVersion(t *testing.T) {
	_, _, err := mustFind(t, "", "v1", "Pod").Decode([]byte(`{"kind":"Pod","apiVersion":"v1","apiversion":"v2"}`), Latest)
	const want = `Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Keys can be empty, or look like paths.
func TestStrangeKeys(t *testing.T) {
	for _, key := range []string{"", ".", "[]", "]", "a[", ".a"} {
		_, strict, err := mustFind(t, "", "v1", "Pod").Decode([]byte(`{"`+key+`":1,"spec":{"`+key+`":1}}`), Oldest)
		if err != nil || len(strict) != 2 {
			t.Errorf("%q: %v %v", key, strict, err)
		}
	}
}

// The library of quantities takes seconds to read 400,000 digits.
func TestLongQuantity(t *testing.T) {
	pod := mustFind(t, "", "v1", "Pod")
	digits := strings.Repeat("1", 400_000)
	text := func(env, cpu string) string {
		return `{"spec":{"containers":[{"env":[{"name":"A","value":"` + env + `"}],"resources":{"requests":{"cpu":` + cpu + `}}}]}}`
	}
	for _, cpu := range []string{`"` + digits + `"`, digits, "0." + digits} {
		json := text("", cpu)
		var err error
		costtest.Within(t, time.Second, func() { _, _, err = pod.Decode([]byte(json), Latest) })
		var e *DecodeError
		if !errors.As(err, &e) || !strings.Contains(e.Error(), "quantit") || e.Offset != strings.Index(json, cpu) {
			t.Errorf("%.10s: error %.300v", cpu, err)
		}
	}
	if _, _, err := pod.Decode([]byte(text(digits, `"1"`)), Latest); err != nil {
		t.Errorf("long digits that are no quantity: %.300v", err)
	}
}

func TestUpdate(t *testing.T) {
	d := mustFind(t, "apps", "v1", "Deployment")
	const text = `{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"LABEL"}},"template":{"metadata":{"labels":{"a":"LABEL"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}`
	change := func(label string) Answer {
		obj, _, err := d.Decode([]byte(strings.ReplaceAll(text, "LABEL", label)), Latest)
		old, _, oldErr := d.Decode([]byte(strings.ReplaceAll(text, "LABEL", "x")), Latest)
		if err := errors.Join(err, oldErr); err != nil {
			t.Fatal(err)
		}
		return d.Update(obj, old, "", "default")
	}
	if answer := change("x"); len(answer.Errors) > 0 {
		t.Errorf("nothing has changed: %v", answer.Errors)
	}
	if answer := change("y"); len(answer.Errors) != 1 || !strings.Contains(answer.Errors[0].Error(), "field is immutable") {
		t.Errorf("the selector has changed: %v", answer.Errors)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{"1.33": 33, "v1.37": 37, "1.34.2": 34, "1.32": 0, "1.38": 0, "2.35": 0, "": 0, "latest": 0} {
		if got, err := ParseVersion(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
}
