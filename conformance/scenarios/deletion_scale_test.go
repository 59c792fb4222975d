package scenarios

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ten thousand dependents go with their owner: in the background, or before their owner does. Those of another owner stay.
func TestManyDependents(t *testing.T) {
	g := newGrove(t)
	for _, policy := range []metav1.DeletionPropagation{background, inFront} {
		t.Run(string(policy), func(t *testing.T) { g.in(t).collectMany(policy) })
	}
}

func (g *grove) collectMany(policy metav1.DeletionPropagation) {
	t, etcd, many := g.T, etcdClient(g.T), pick(10_000, 1_000)
	felled, spared := strings.ToLower("felled-"+string(policy)), strings.ToLower("spared-"+string(policy))
	g.namespace(felled)
	g.namespace(spared)
	owner, other := g.plant(of("forests", ""), "owner-"+felled), g.plant(of("forests", ""), "other-"+felled)
	g.multiply(etcd, g.plant(of("trees", felled), "seed", owner.holds()), felled, many)
	g.multiply(etcd, g.plant(of("trees", spared), "seed", other.holds()), spared, 500)
	// Some have both owners, and go with neither.
	both := g.plant(of("trees", spared), "both", owner.holds(), other.holds())
	g.passes()
	if n := g.count(etcd, "trees", felled); n != int64(many) {
		t.Fatalf("%d dependents", n)
	}

	began := time.Now()
	g.fell(owner, policy)
	if policy == inFront {
		for limit := began.Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			// The owner first: what is there after it has been seen was there before it goes.
			there, left := g.look(owner), g.count(etcd, "trees", felled)
			if there == nil && left > 0 {
				t.Fatalf("the owner has gone before %d of its dependents", left)
			}
			if there == nil {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("%d dependents are left", left)
			}
		}
	} else {
		eventually(t, 2*time.Minute, "the dependents are gone", func() bool { return g.count(etcd, "trees", felled) == 0 })
	}
	took := time.Since(began)
	t.Logf("%d dependents, %s: %.1f s, %.0f objects per second", many, policy, took.Seconds(), float64(many)/took.Seconds())

	g.passes()
	g.gone(owner)
	g.stand(other, both)
	if n := g.count(etcd, "trees", spared); n != 501 {
		t.Errorf("of 501 objects that have another owner %d are left", n)
	}
}
