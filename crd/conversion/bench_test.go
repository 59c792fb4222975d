package conversion_test

import (
	"fmt"
	"strings"
	"testing"
)

// large is an object of 2 KB in the form that a server stores.
func large(t testing.TB) string {
	var ports, rules []string
	for i := range 8 {
		ports = append(ports, fmt.Sprintf(`{name: port-%d, nr: %d}`, i, 8000+i))
		rules = append(rules, fmt.Sprintf(`{a: rule number %d}`, i))
	}
	return object(t, "v1alpha1", `
metadata:
  name: w
  namespace: default
  uid: 0b6c0a53-6b1c-4b3a-9a1b-1c1d1e1f2021
  resourceVersion: "12345"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: web, tier: front}
  annotations: {example.com/note: a note of some length about this object}
  managedFields:
  - {manager: kubectl, operation: Update, apiVersion: example.com/v1alpha1, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:size": {}, "f:capacity": {"f:unit": {}}, "f:ports": {"k:{\"name\":\"port-0\"}": {".": {}, "f:nr": {}}, "k:{\"name\":\"port-1\"}": {".": {}, "f:nr": {}}}, "f:address": {}, "f:mode": {}, "f:host": {}}}}
spec:
  size: 5
  capacity: {unit: `+strings.Repeat("Gi", 10)+`}
  image: registry.example.com/some/image@sha256:0123456789abcdef0123456789abcdef
  host: www.example.com
  address: db.example.com:5432
  mode: A
  limits: {cpu: {max: 4}, memory: {max: 16}}
  free: {a: `+strings.Repeat("text ", 30)+`}
  ports: [`+strings.Join(ports, ", ")+`]
  rules: [`+strings.Join(rules, ", ")+`]
  env: [{name: a, value: x}, {name: b, value: z}, {name: c, value: `+strings.Repeat("value ", 20)+`}]
status: {ready: true}
`)
}

// Conversion of an object of 2 KB by rules that move, split, map and preserve.
func BenchmarkConvert(b *testing.B) {
	p := compile(b, widgets)
	in := []byte(large(b))
	there, err := p.Convert(nil, in, "v1")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, to string
		object   []byte
	}{{"there", "v1", in}, {"back", "v1alpha1", there}} {
		b.Run(fmt.Sprintf("%s-%dB", c.name, len(c.object)), func(b *testing.B) {
			b.SetBytes(int64(len(c.object)))
			b.ReportAllocs()
			buf := make([]byte, 0, 8<<10)
			for b.Loop() {
				if _, err := p.Convert(buf[:0], c.object, c.to); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Each object of a list in another version is converted: memory is taken for what is saved, and for little else.
func TestConvertAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector drops what sync.Pool keeps: it runs without")
	}
	p := compile(t, widgets)
	in := []byte(large(t))
	there, err := p.Convert(nil, in, "v1")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 8<<10)
	for to, object := range map[string][]byte{"v1": in, "v1alpha1": there} {
		const most = 8
		if n := testing.AllocsPerRun(200, func() { _, err = p.Convert(buf[:0], object, to) }); err != nil || n > most {
			t.Errorf("to %s: %v allocations, more than %d: %v", to, n, most, err)
		}
	}
}
