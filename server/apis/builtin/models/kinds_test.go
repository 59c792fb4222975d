package models

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	known "k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "write notes.json, and types.json of crd/kinds")

// kindGroups are the groups and versions whose types crd/kinds describes.
var kindGroups = []schema.GroupVersion{
	{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"},
	{Group: "autoscaling", Version: "v1"}, {Group: "autoscaling", Version: "v2"}, {Group: "policy", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"}, {Group: "discovery.k8s.io", Version: "v1"}, {Group: "storage.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"}, {Group: "node.k8s.io", Version: "v1"},
	{Group: "storagemigration.k8s.io", Version: "v1"}, {Group: "storagemigration.k8s.io", Version: "v1beta1"}, {Group: "resource.k8s.io", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"}, {Group: "events.k8s.io", Version: "v1"}, {Group: "certificates.k8s.io", Version: "v1"},
}

// TestGoldenKindTypes compares types.json, which crd/kinds reads, with the Go types of
// k8s.io/api. The module of crd/kinds does not import them.
func TestGoldenKindTypes(t *testing.T) {
	w := typeWriter{types: map[string]map[string]string{}}
	for _, version := range kindGroups {
		for _, one := range known.Scheme.KnownTypes(version) {
			name := one.PkgPath() + "." + one.Name()
			if strings.HasSuffix(one.Name(), "List") || strings.HasSuffix(one.Name(), "Options") || !strings.HasPrefix(name, "k8s.io/api/") {
				continue
			}
			w.add(one)
		}
	}
	golden(t, filepath.Join("..", "..", "..", "..", "crd", "kinds", "types.json"), w.types)
}

// golden compares a value with a JSON file: with -update, it writes the file.
func golden(t *testing.T, file string, value any) {
	t.Helper()
	want, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the Go types of k8s.io/api: run `go test ./server/apis/builtin/models -update`", filepath.ToSlash(file))
	}
}

// typeWriter collects the fields of structs.
type typeWriter struct{ types map[string]map[string]string }

// special are the types that JSON does not write as structs, and what kinds call them.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[corev1.ResourceList]():  "resources",
	reflect.TypeFor[intstr.IntOrString]():   "intOrString",
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microTime",
	reflect.TypeFor[metav1.Duration]():      "duration",
	reflect.TypeFor[time.Time]():            "time",
	reflect.TypeFor[runtime.RawExtension](): "any",
	reflect.TypeFor[metav1.FieldsV1]():      "any",
}

// add collects a struct and what its fields refer to, and returns its name.
func (w typeWriter) add(t reflect.Type) string {
	name := path.Base(path.Dir(t.PkgPath())) + "/" + path.Base(t.PkgPath()) + "." + t.Name()
	if _, ok := w.types[name]; !ok {
		fields := map[string]string{}
		w.types[name] = fields
		w.fields(t, fields)
	}
	return name
}

// fields collects the fields of a struct. Those of inlined structs are its own.
func (w typeWriter) fields(t reflect.Type, into map[string]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !field.IsExported():
		case tag == "" && (field.Anonymous || slices.Contains(strings.Split(options, ","), "inline")):
			w.fields(pointed(field.Type), into)
		case tag != "":
			into[tag] = w.name(field.Type)
			if key := field.Tag.Get("patchMergeKey"); key != "" {
				into[tag] = strings.Replace(into[tag], "[]", "["+key+"]", 1) // the items are matched by this key
			}
		}
	}
}

// name is what kinds call a type.
func (w typeWriter) name(t reflect.Type) string {
	if name, ok := special[t]; ok {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + w.name(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + w.name(t.Elem())
	case reflect.Map:
		return "map[string]" + w.name(t.Elem())
	case reflect.Struct:
		return w.add(t)
	default:
		return t.Kind().String()
	}
}
