package generator

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// document has a kind with what mutations look for: maps, lists with a merge key, enums, quantities, a schema that contains itself.
const document = `{"components":{"schemas":{
"x.Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}],"properties":{
 "apiVersion":{"type":"string"},"kind":{"type":"string"},
 "metadata":{"default":{},"allOf":[{"$ref":"#/components/schemas/x.ObjectMeta"}]},
 "spec":{"allOf":[{"$ref":"#/components/schemas/x.Spec"}]},"status":{"type":"object"}}},
"x.ObjectMeta":{"type":"object","properties":{"name":{"type":"string"},"labels":{"type":"object","additionalProperties":{"type":"string"}}}},
"x.Spec":{"type":"object","required":["items"],"properties":{
 "mode":{"type":"string","enum":["Fast","Slow"]},"policy":{"type":"string","description":"one of \"Always\" and \"Never\""},
 "replicas":{"type":"integer","format":"int32"},"limits":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/x.Quantity"}},
 "items":{"type":"array","x-kubernetes-list-map-keys":["name"],"items":{"$ref":"#/components/schemas/x.Item"}},
 "port":{"$ref":"#/components/schemas/x.IntOrString"},"nested":{"$ref":"#/components/schemas/x.Spec"}}},
"x.Item":{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"},"on":{"type":"boolean"}}},
"x.Quantity":{"type":"string"},"x.IntOrString":{"format":"int-or-string"}}}}`

func thing(t testing.TB) (*Schema, map[string]any) {
	t.Helper()
	d, err := Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	s := d.Kind("g", "v1", "Thing")
	if s == nil {
		t.Fatal("no schema of the kind")
	}
	return s, map[string]any{
		"apiVersion": "g/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "uid": Slot{"uid", ".metadata.uid"}},
		"spec": map[string]any{
			"mode": "Fast", "replicas": int64(3), "limits": map[string]any{"cpu": "1"}, "port": "http",
			"items": []any{map[string]any{"name": "one", "path": "/a"}, map[string]any{"name": "two", "on": true}},
		},
	}
}

func TestParse(t *testing.T) {
	s, _ := thing(t)
	spec := s.Properties["spec"]
	if got := spec.Properties["items"].MergeKey; got != "name" {
		t.Errorf("merge key of items: %q", got)
	}
	if got := spec.Properties["policy"].Words; !reflect.DeepEqual(got, []string{"Always", "Never"}) {
		t.Errorf("words of policy: %q", got)
	}
	if spec.Properties["nested"] != spec {
		t.Error("a schema that contains itself must not be copied")
	}
	if _, err := Parse([]byte("{")); err == nil {
		t.Error("a broken document was parsed")
	}
}

// TestMutate checks that objects depend on the numbers alone, stay small, are JSON, and that every change is made.
func TestMutate(t *testing.T) {
	s, object := thing(t)
	before, known := Copy(object), Known{}
	known.Learn(object)
	seen, different := map[string]int{}, map[string]bool{}
	for i := range 2000 {
		a, names := Mutate(NewSource(7, "things", i), object, s, known, 1+i%6)
		b, _ := Mutate(NewSource(7, "things", i), object, s, known, 1+i%6)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("object %d differs between two runs:\n%v\n%v", i, a, b)
		}
		data, err := json.Marshal(Fill(a, func(Slot) (any, bool) { return "x", true }))
		if err != nil {
			t.Fatalf("object %d is not JSON: %v", i, err)
		}
		if len(data) > 3*maxBytes {
			t.Errorf("object %d has %d bytes", i, len(data))
		}
		for _, name := range names {
			seen[name]++
		}
		different[string(data)] = true
	}
	if !reflect.DeepEqual(object, before) {
		t.Error("Mutate changed its argument")
	}
	for _, c := range changes {
		if seen[c.name] == 0 {
			t.Errorf("no object was changed by %q", c.name)
		}
	}
	if len(different) < 1300 {
		t.Errorf("only %d of 2000 objects are different", len(different))
	}
}

// TestHostileStart checks that mutations of mutations do not panic, whatever the object has become.
func TestHostileStart(t *testing.T) {
	s, object := thing(t)
	for i := range 60 {
		src := NewSource(1, "chain", i)
		current := object
		for range 12 {
			current, _ = Mutate(src, current, s, nil, 3)
			Strategic(src, s, object, current)
			JSONPatch(src, object, current)
			Applied(src, current)
			if n := size(current); n > 20*maxBytes {
				t.Fatalf("object %d has %d bytes", i, n)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	before := map[string]any{"a": int64(1), "b": map[string]any{"c": "d", "e": "f"}, "g": "h"}
	after := map[string]any{"a": int64(1), "b": map[string]any{"c": "x", "e": "f"}, "i": "j"}
	want := map[string]any{"b": map[string]any{"c": "x"}, "g": nil, "i": "j"}
	if got := Merge(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOperations(t *testing.T) {
	var ops []any
	operations(map[string]any{"a/b": int64(1), "l": []any{"x", "y"}, "gone": true}, map[string]any{"a/b": int64(2), "l": []any{"x", "z"}, "new": nil}, "", &ops)
	want := "[map[op:replace path:/a~1b value:2] map[op:remove path:/gone] map[op:replace path:/l/1 value:z] map[op:add path:/new value:<nil>]]"
	if got := fmt.Sprint(ops); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStrategicNamesOnlyChangedItems(t *testing.T) {
	s, before := thing(t)
	after := Copy(before).(map[string]any)
	items := after["spec"].(map[string]any)["items"].([]any)
	items[0].(map[string]any)["path"] = "/b"
	after["spec"].(map[string]any)["items"] = items[:1]
	for i := range 50 {
		spec, _ := Strategic(NewSource(1, "s", i), s, before, after)["spec"].(map[string]any)
		list, _ := spec["items"].([]any)
		if len(list) != 2 {
			t.Fatalf("patch %d has items %v", i, list)
		}
		first, second := list[0].(map[string]any), list[1].(map[string]any)
		if first["path"] != "/b" || first["name"] != "one" || second["$patch"] != "delete" || second["name"] != "two" {
			t.Errorf("patch %d has items %v", i, list)
		}
	}
}

func TestFillRemovesSlotsWithoutValue(t *testing.T) {
	in := map[string]any{"a": Slot{"uid", "x"}, "b": []any{Slot{"uid", "y"}, "z"}}
	got := Fill(in, func(s Slot) (any, bool) { return "v", s.Path == "x" })
	if want := (map[string]any{"a": "v", "b": []any{"z"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
