package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Of two servers over one etcd one runs the garbage collector. When it is killed the other takes over within the time of the lease; when it ends as
// it should, at once. What has an owner stays all the while.
func TestCollectorOfReplicas(t *testing.T) {
	first := newGrove(t)
	second := joinGrove(t, first.prefix, serve(t, against, first.prefix))
	first.namespace("wood")
	forest, spare := first.plant(of("forests", ""), "forest"), first.plant(of("forests", ""), "spare")
	var spared []plant
	for i := range 30 {
		spared = append(spared, first.plant(of([]string{"trees", "configmaps"}[i%2], "wood"), fmt.Sprintf("spared-%d", i), spare.holds()))
	}
	first.passes()
	second.passes() // whom the deletion is asked of does not matter
	if !first.leads() || second.leads() {
		t.Fatalf("the first leads: %v, the second: %v", first.leads(), second.leads())
	}

	dependents := second.seedlings("killed", forest)
	first.server.Kill()
	killed := time.Now()
	second.fell(forest, background)
	second.gone(forest)
	if second.leads() {
		t.Error("the second leads at once, with the lease of the first not yet over")
	}
	second.stand(dependents...)
	second.gone(dependents...)
	took := time.Since(killed)
	t.Logf("after the leader was killed the other had collected %d objects within %.1f s", len(dependents), took.Seconds())
	// The lease lasts for 15 s, and is looked at every 2 s and a bit.
	if took > 25*time.Second {
		t.Errorf("it took %v", took)
	}
	if !second.leads() {
		t.Error("the second does not lead")
	}
	second.passes()
	second.stand(append(spared, spare)...)

	// The third gets the lease from the second, which gives it up.
	third := joinGrove(t, first.prefix, serve(t, against, first.prefix))
	forest = third.plant(of("forests", ""), "forest")
	dependents = third.seedlings("ended", forest)
	stop(t, second.server)
	ended := time.Now()
	third.fell(forest, inFront)
	third.gone(append(dependents, forest)...)
	took = time.Since(ended)
	t.Logf("after the leader had ended the other had collected %d objects within %.1f s", len(dependents), took.Seconds())
	if took > 12*time.Second {
		t.Errorf("it took %v, and the lease had been given up", took)
	}
	third.passes()
	third.stand(append(spared, spare)...)
	third.fell(spare, background)
	third.gone(spared...)
}

// leads reports whether the server holds the lease: it has said so in its log, with the identity that is in the lease.
func (g *grove) leads() bool {
	g.Helper()
	var lease struct {
		Spec struct{ HolderIdentity string }
	}
	decode(g.T, get(g.T, g.conn, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/espalier-controllers"), &lease)
	return lease.Spec.HolderIdentity != "" && strings.Contains(g.server.Output(), fmt.Sprintf("identity=%q", lease.Spec.HolderIdentity))
}

// seedlings are dependents of an owner, of two kinds.
func (g *grove) seedlings(name string, owner plant) (all []plant) {
	g.Helper()
	for i := range 30 {
		all = append(all, g.plant(of([]string{"trees", "configmaps"}[i%2], "wood"), fmt.Sprintf("%s-%d", name, i), owner.holds()))
	}
	return all
}
