package infer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
)

// resource returns a CRD whose versions have these properties in spec.
func resource(t testing.TB, old, now string) *crd.CRD {
	t.Helper()
	version := func(name, storage, properties string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%s,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":%s}}}}}`, name, storage, properties)
	}
	d, err := crd.Parse(fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"webs","singular":"web","kind":"Web","listKind":"WebList"},"versions":[%s,%s]}}`,
		version("v1alpha1", "false", old), version("v1", "true", now)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func propose(t testing.TB, d *crd.CRD) *infer.Proposal {
	t.Helper()
	p, err := infer.Propose(nil, d)
	if err != nil {
		t.Fatal(err)
	}
	if plan, found, err := conversion.Compile(p.CRD); plan == nil {
		t.Fatalf("the rules do not compile: %v %v\n%s", found, err, p.Text())
	}
	return p
}

func TestProposals(t *testing.T) {
	for _, c := range []struct {
		name, old, now string
		want           []string // rules; those after ? are unsure
		kept           []string // fields that are preserved
	}{
		{"nothing", `{"a":{"type":"string"}}`, `{"a":{"type":"string"}}`, nil, nil},
		{"renamed", `{"replicas":{"type":"integer","description":"How many there are of it."}}`, `{"replicaCount":{"type":"integer","description":"How many there are of it."}}`,
			[]string{"?move: {from: spec.replicas, to: spec.replicaCount}"}, nil},
		{"upper case", `{"podIp":{"type":"string"}}`, `{"podIP":{"type":"string"}}`, []string{"move: {from: spec.podIp, to: spec.podIP}"}, nil},
		{"moved", `{"size":{"type":"integer"}}`, `{"capacity":{"type":"object","properties":{"size":{"type":"integer"}}}}`, []string{"?move: {from: spec.size, to: spec.capacity.size}"}, nil},
		{"wrapped", `{"host":{"type":"string"}}`, `{"hosts":{"type":"array","items":{"type":"string"}}}`, []string{"wrap: {from: spec.host, to: spec.hosts}"}, nil},
		{"unwrapped", `{"host":{"type":"array","items":{"type":"string"}}}`, `{"host":{"type":"string"}}`, []string{"unwrap: {from: spec.host, to: spec.host}"}, nil},
		{"enum", `{"mode":{"type":"string","enum":["on","off","auto"]}}`, `{"mode":{"type":"string","enum":["On","Off","auto"]}}`, []string{"enum: {from: spec.mode, values: {'on': 'On', 'off': 'Off'}}"}, nil},
		{"list and map", `{"env":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}`, `{"env":{"type":"object","additionalProperties":{"type":"string"}}}`,
			[]string{"listToMap: {list: spec.env, key: name, map: spec.env, value: value}"}, nil},
		{"map and list", `{"env":{"type":"object","additionalProperties":{"type":"string"}}}`, `{"env":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}`,
			[]string{"mapToList: {list: spec.env, key: name, map: spec.env, value: value}"}, nil},
		{"number in a string", `{"retries":{"type":"string"}}`, `{"retries":{"type":"integer"}}`, []string{"move: {from: spec.retries, to: spec.retries}"}, nil},
		{"scalar and object", `{"image":{"type":"string"}}`, `{"image":{"type":"object","properties":{"name":{"type":"string"},"size":{"type":"integer"}}}}`,
			[]string{"move: {from: spec.image, to: spec.image.name}"}, []string{"spec.image.size"}},
		{"in items", `{"ports":{"type":"array","items":{"type":"object","properties":{"number":{"type":"integer"}}}}}`, `{"ports":{"type":"array","items":{"type":"object","properties":{"numbers":{"type":"integer"}}}}}`,
			[]string{"?move: {from: 'spec.ports[].number', to: 'spec.ports[].numbers'}"}, nil},
		{"nothing alike", `{"color":{"type":"string"}}`, `{"weight":{"type":"integer"}}`, nil, []string{"spec.color", "spec.weight"}},
		{"odd names", `{"a.b":{"type":"string"},"c d":{"type":"string"}}`, `{"A.B":{"type":"string"},"it's":{"type":"string"}}`, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := propose(t, resource(t, c.old, c.now))
			var got, kept []string
			for _, r := range p.Pairs[0].Rules {
				if text := r.Text; r.Sure {
					got = append(got, text)
				} else {
					got = append(got, "?"+text)
				}
			}
			for _, v := range []string{"v1alpha1", "v1"} {
				kept = append(kept, p.Pairs[0].Preserved[v]...)
			}
			if c.name != "odd names" && (!slices.Equal(got, c.want) || !slices.Equal(kept, c.kept)) {
				t.Errorf("got %q, preserved %q\nwant %q, %q", got, kept, c.want, c.kept)
			}
			if n := strings.Count(p.Text(), "# unsure: "); n != strings.Count(strings.Join(got, ""), "?") {
				t.Errorf("%d comments:\n%s", n, p.Text())
			}
		})
	}
}

func TestOldAndNew(t *testing.T) {
	d := resource(t, `{"size":{"type":"integer"}}`, `{"sizes":{"type":"integer"}}`)
	old, now := *d, *d
	old.Versions, now.Versions = d.Versions[:1], d.Versions[1:]
	p, err := infer.Propose(&old, &now)
	if err != nil || len(p.Pairs) != 1 || p.Pairs[0].From != "v1alpha1" || p.Pairs[0].To != "v1" || len(p.Pairs[0].Rules) != 1 {
		t.Fatal(p, err)
	}
	if _, err := infer.Propose(nil, &now); err == nil {
		t.Error("rules for one version")
	}
	now.Kind = "Other"
	if _, err := infer.Propose(&old, &now); err == nil {
		t.Error("rules between two kinds")
	}
}

// schemas returns random properties from few names, so that many are alike.
func schemas(r *rand.Rand, depth int) string {
	var b strings.Builder
	b.WriteString("{")
	seen := map[string]bool{}
	for range 1 + r.IntN(6) {
		name := []string{"a", "size", "sizes", "Size", "host", "hosts", "name", "value", "a.b", "x y"}[r.IntN(10)]
		if seen[name] {
			continue
		}
		seen[name] = true
		if len(seen) > 1 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "%q:", name)
		switch n := r.IntN(8); {
		case n < 4 || depth == 0:
			fmt.Fprintf(&b, `{"type":%q}`, []string{"string", "integer", "boolean", "number"}[n%4])
		case n == 4:
			fmt.Fprintf(&b, `{"type":"array","items":{"type":"object","properties":%s}}`, schemas(r, depth-1))
		case n == 5:
			fmt.Fprintf(&b, `{"type":"object","additionalProperties":{"type":"object","properties":%s}}`, schemas(r, depth-1))
		case n == 6:
			b.WriteString(`{"type":"array","items":{"type":"string"}}`)
		default:
			fmt.Fprintf(&b, `{"type":"object","properties":%s}`, schemas(r, depth-1))
		}
	}
	return b.String() + "}"
}

// FuzzPropose: proposals always compile.
func FuzzPropose(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		propose(t, resource(t, schemas(r, 3), schemas(r, 3)))
	})
}
