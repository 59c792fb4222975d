package garbagecollector

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/server/restmappingtest"
)

// oracle knows which objects there are, by name, and their owners. What becomes
// of them does not depend on the order in which a collector gets to them.
type oracle map[string][]string

// deleted takes out objects, and all whose owners are gone; the others lose their
// references to those.
func (o oracle) deleted(names ...string) {
	gone := map[string]bool{}
	for _, name := range names {
		delete(o, name)
		gone[name] = true
	}
	for again := true; again; {
		again = false
		for name, owners := range o {
			if len(owners) > 0 && !slices.ContainsFunc(owners, func(owner string) bool { return !gone[owner] }) {
				delete(o, name)
				gone[name], again = true, true
			}
		}
	}
	o.forget(gone)
}

// orphaned takes out an object. Its dependents stay.
func (o oracle) orphaned(name string) {
	delete(o, name)
	o.forget(map[string]bool{name: true})
}

func (o oracle) forget(gone map[string]bool) {
	for name, owners := range o {
		o[name] = slices.DeleteFunc(owners, func(owner string) bool { return gone[owner] })
	}
}

func (o oracle) String() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		lines = append(lines, name+" of "+strings.Join(slices.Sorted(slices.Values(o[name])), ","))
	}
	return strings.Join(lines, "\n")
}

// randomGraph is a random graph of objects of several kinds.
type randomGraph struct {
	*site
	objects map[string]*unstructured.Unstructured
	oracle  oracle
}

// fill creates objects, and then references between them, so that there are cycles.
func fill(t *testing.T, s *site, r *rand.Rand, count int) *randomGraph {
	t.Helper()
	w := &randomGraph{s, map[string]*unstructured.Unstructured{}, oracle{}}
	var names, stars []string
	for n := range count {
		name := fmt.Sprint("o", n)
		switch names = append(names, name); r.IntN(4) {
		case 0:
			w.objects[name] = s.Object(t, group, "Star", "", name)
			stars = append(stars, name)
		case 1:
			w.objects[name] = s.Object(t, "v1", "ConfigMap", "default", name)
		default:
			w.objects[name] = s.Object(t, group, "Widget", "default", name)
		}
		w.oracle[name] = nil
	}
	for _, name := range names {
		from := names
		if slices.Contains(stars, name) {
			from = stars
		}
		w.refer(t, r, name, from)
	}
	return w
}

func (w *randomGraph) refer(t *testing.T, r *rand.Rand, name string, from []string) {
	t.Helper()
	refs := []metav1.OwnerReference{}
	for range r.IntN(3) {
		owner := from[r.IntN(len(from))]
		if slices.Contains(w.oracle[name], owner) {
			continue
		}
		ref := restmappingtest.Owner(w.objects[owner])
		*ref.BlockOwnerDeletion = r.IntN(4) > 0
		refs = append(refs, ref)
		w.oracle[name] = append(w.oracle[name], owner)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
	if err != nil {
		t.Fatal(err)
	}
	w.merge(t, w.objects[name], string(body))
}

// state is what the server has.
func (w *randomGraph) state(t *testing.T) oracle {
	t.Helper()
	now, names := oracle{}, map[string]string{}
	for name, o := range w.objects {
		names[string(o.GetUID())] = name
	}
	for name, o := range w.objects {
		current := w.Get(t, o)
		if current == nil {
			continue
		}
		now[name] = nil
		for _, ref := range current.GetOwnerReferences() {
			now[name] = append(now[name], names[string(ref.UID)])
		}
	}
	return now
}

// agrees waits until the server has what the oracle says, and that it stays so.
func (w *randomGraph) agrees(t *testing.T, after string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("after %s the server has\n%s\nand ought to have\n%s", after, w.state(t), w.oracle)
		}
	}()
	want := w.oracle.String()
	restmappingtest.Eventually(t, "the state after "+after, func() bool { return w.state(t).String() == want })
	w.settled(t)
	if w.state(t).String() != want {
		t.Fatalf("it does not stay so after %s", after)
	}
}

// TestLikeTheOracle deletes objects of random graphs, one by one and in crowds.
func TestLikeTheOracle(t *testing.T) {
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			s := start(t)
			s.collect(t)
			w := fill(t, s, r, 40)
			w.agrees(t, "the beginning")
			for range 6 {
				name, policy := w.any(r), policies[r.IntN(len(policies))]
				s.Delete(t, w.objects[name], policy)
				if policy == metav1.DeletePropagationOrphan {
					w.oracle.orphaned(name)
				} else {
					w.oracle.deleted(name)
				}
				w.agrees(t, fmt.Sprintf("%s of %s", policy, name))
				if len(w.oracle) < 6 {
					break
				}
			}
			crowd := []string{w.any(r), w.any(r), w.any(r), w.any(r)}
			slices.Sort(crowd)
			crowd = slices.Compact(crowd)
			for _, name := range crowd {
				if s.Get(t, w.objects[name]) != nil {
					err := s.Of(t, w.objects[name]).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policies[r.IntN(2)]})
					if err != nil && !strings.Contains(err.Error(), "not found") {
						t.Fatal(err)
					}
				}
			}
			w.oracle.deleted(crowd...)
			w.agrees(t, fmt.Sprint("the crowd ", crowd))
		})
	}
}

func (w *randomGraph) any(r *rand.Rand) string {
	names := slices.Sorted(maps.Keys(w.oracle))
	return names[r.IntN(len(names))]
}
