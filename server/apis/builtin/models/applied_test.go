package models

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// clientTypes are all schemas of client-go. Any object that is converted gives access to
// them.
func clientTypes(t testing.TB) *schema.Schema {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	sample := &corev1.ConfigMap{}
	sample.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	typed, err := applyconfigurations.NewTypeConverter(s).ObjectToTyped(sample)
	if err != nil {
		t.Fatal(err)
	}
	return typed.Schema()
}

// needed are the schemas of client-go for kinds that a server may have, and for all that
// they refer to, in client-go's order.
func needed(t testing.TB) []schema.TypeDef {
	t.Helper()
	all, seen := clientTypes(t), map[string]bool{}
	var add func(name string)
	var addAtom func(a schema.Atom)
	addRef := func(r schema.TypeRef) {
		if r.NamedType != nil {
			add(*r.NamedType)
		}
		addAtom(r.Inlined)
	}
	add = func(name string) {
		if def, ok := all.FindNamedType(name); ok && !seen[name] {
			seen[name] = true
			addAtom(def.Atom)
		}
	}
	addAtom = func(a schema.Atom) {
		if a.List != nil {
			addRef(a.List.ElementType)
		}
		if a.Map != nil {
			for _, f := range a.Map.Fields {
				addRef(f.Type)
			}
			addRef(a.Map.ElementType)
		}
	}
	for _, name := range names(roots()) {
		add(name)
	}
	return slices.DeleteFunc(slices.Clone(all.Types), func(d schema.TypeDef) bool { return !seen[d.Name] })
}

// TestGoldenApplied compares applied.txt with client-go.
func TestGoldenApplied(t *testing.T) {
	want := needed(t)
	var w strings.Builder
	for _, def := range want {
		w.WriteString(def.Name + " ")
		writeAtom(t, &w, def.Atom)
		w.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile("applied.txt", []byte(w.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if w.String() != appliedFile {
		t.Fatal("applied.txt is not what client-go has: run this test with -update")
	}
	got := Parser().Schema.Types
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(exported(got[i]), exported(want[i])) {
			t.Errorf("%s is not read as it was written", want[i].Name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d types are read, want %d", len(got), len(want))
	}
}

// exported is a type without what its first use adds.
func exported(def schema.TypeDef) any {
	if def.Map == nil {
		return def
	}
	m := def.Map
	def.Map = nil
	return []any{def, m.Fields, m.Unions, m.ElementType, m.ElementRelationship}
}

func writeAtom(t *testing.T, w *strings.Builder, a schema.Atom) {
	t.Helper()
	if a.Scalar != nil {
		fmt.Fprintf(w, "s%s ", *a.Scalar)
	}
	if l := a.List; l != nil {
		fmt.Fprintf(w, "l%s %d ", l.ElementRelationship, len(l.Keys))
		for _, key := range l.Keys {
			w.WriteString(key + " ")
		}
		writeRef(t, w, l.ElementType)
	}
	if m := a.Map; m != nil {
		fmt.Fprintf(w, "m%s %d ", m.ElementRelationship, len(m.Fields))
		for _, f := range m.Fields {
			fmt.Fprintf(w, "%s %s ", f.Name, written(t, f.Default))
			writeRef(t, w, f.Type)
		}
		fmt.Fprintf(w, "%d ", len(m.Unions))
		for _, u := range m.Unions {
			fmt.Fprintf(w, "%s ", written(t, u))
		}
		writeRef(t, w, m.ElementType)
	}
	w.WriteString("e ")
}

func writeRef(t *testing.T, w *strings.Builder, r schema.TypeRef) {
	t.Helper()
	switch {
	case r.NamedType != nil:
		w.WriteString("@" + *r.NamedType + " ")
	case r.Inlined != schema.Atom{}:
		w.WriteString("( ")
		writeAtom(t, w, r.Inlined)
	case r.ElementRelationship == nil && !r.Nullable:
		w.WriteString(". ")
		return
	default:
		t.Fatalf("the reference %+v is to nothing", r)
	}
	if r.Nullable {
		w.WriteString("?")
	}
	if r.ElementRelationship == nil {
		w.WriteString("- ")
		return
	}
	w.WriteString(string(*r.ElementRelationship) + " ")
}

// written is a value as JSON without spaces, a dash for none.
func written(t *testing.T, value any) string {
	t.Helper()
	if value == nil {
		return "-"
	}
	b, err := json.Marshal(fromYAML(value))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), " ", `\u0020`)
}

// A type that a test does not know must not go unnoticed: every kind that clients can
// apply has a schema.
func TestEveryAppliedKindHasASchema(t *testing.T) {
	for _, name := range names(append(slices.Clone(applied), kindsOf()...)) {
		if _, theirs := clientTypes(t).FindNamedType(name); !theirs {
			continue // client-go applies no lists
		}
		if _, ok := Parser().Schema.FindNamedType(name); !ok {
			t.Errorf("%s has no schema", name)
		}
	}
}

// BenchmarkParser compares reading applied.txt with reading client-go's YAML, which a
// process does once: only -benchtime=1x says how long that takes.
func BenchmarkParser(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			Parser()
		}
	})
	b.Run("client-go", func(b *testing.B) {
		for b.Loop() {
			clientTypes(b)
		}
	})
}
