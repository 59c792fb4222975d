package mutate

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

const base = `{"type":"object","description":"d","properties":{"spec":{"type":"object","required":["a"],"properties":{
"a":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}}}},
"map":{"type":"object","additionalProperties":{"type":"integer"}},"more":{"type":"object","properties":{"x":{"type":"number"}}}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`

func pool(t testing.TB) *Pool {
	p := &Pool{}
	if err := p.Add("base", []byte(base), 8); err != nil {
		t.Fatal(err)
	}
	if p.Len() < 3 {
		t.Fatalf("%d parts", p.Len())
	}
	return p
}

func TestSeedsDetermineMutants(t *testing.T) {
	p, q := pool(t), pool(t)
	for seed := range uint64(2000) {
		a, b := p.Make(seed), q.Make(seed)
		if !bytes.Equal(a.Schema, b.Schema) || a.Status != b.Status {
			t.Fatalf("seed %d gave\n%s\n%s", seed, a.Schema, b.Schema)
		}
		if !json.Valid(a.Schema) {
			t.Fatalf("seed %d is no JSON: %s", seed, a.Schema)
		}
	}
}

// Mutants are of use only if every mutation applies, and accepted, refused and undecodable mutants are all frequent.
func TestMutantsSpread(t *testing.T) {
	p := pool(t)
	applied := map[string]int{}
	var accepted, refused, undecodable int
	const n = 3000
	for seed := range uint64(n) {
		m := p.Make(seed)
		for _, name := range m.Applied {
			applied[name]++
		}
		switch v := oracle.Check(m.Schema, m.Status); {
		case v.Undecodable != nil:
			undecodable++
		case v.Accepted():
			accepted++
		default:
			refused++
		}
	}
	for _, m := range table {
		if applied[m.name] == 0 {
			t.Errorf("mutation %s never applied", m.name)
		}
	}
	t.Logf("accepted %d, refused %d, undecodable %d", accepted, refused, undecodable)
	if accepted < n/20 || refused < n/3 || undecodable < n/100 || undecodable > n/3 {
		t.Errorf("lopsided: accepted %d, refused %d, undecodable %d", accepted, refused, undecodable)
	}
}

func BenchmarkMake(b *testing.B) {
	p := pool(b)
	for i := 0; b.Loop(); i++ {
		p.Make(uint64(i))
	}
}

// CRDs are functions of the seed, too, and cover every mutation.
func TestCRDs(t *testing.T) {
	d := NewCRDs(pool(t))
	if err := d.Add("trees", []byte(`{"metadata":{"name":"trees.a.b"},"spec":{"group":"a.b","names":{"plural":"trees","kind":"Tree"},"versions":[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{}}},{"name":"v2"}]}}`)); err != nil {
		t.Fatal(err)
	}
	applied, changed := map[string]bool{}, 0
	for seed := range uint64(1500) {
		a, b := d.Make(seed), d.Make(seed)
		if string(a.Old) != string(b.Old) || string(a.New) != string(b.New) {
			t.Fatalf("seed %d gives two changes", seed)
		}
		if string(a.Old) != string(a.New) {
			changed++
		}
		for _, name := range a.Applied {
			applied[name] = true
		}
	}
	for _, m := range crdTable {
		if !applied[m.name] {
			t.Errorf("%s is never applied", m.name)
		}
	}
	if changed < 1000 || changed == 1500 {
		t.Errorf("%d of 1500 change something", changed)
	}
}
