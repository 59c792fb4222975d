package scenarios

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	background = metav1.DeletePropagationBackground
	inFront    = metav1.DeletePropagationForeground
	orphan     = metav1.DeletePropagationOrphan
)

// Objects go with their owners, in all the ways that can be asked for.
func TestOwners(t *testing.T) {
	g := newGrove(t)
	for _, namespace := range []string{"wood", "meadow"} {
		g.namespace(namespace)
	}
	t.Run("are of several kinds", func(t *testing.T) { g.in(t).severalKinds() })
	t.Run("leave orphans", func(t *testing.T) { g.in(t).leaveOrphans() })
	t.Run("own each other", func(t *testing.T) { g.in(t).cycles() })
	t.Run("wait for dependents with finalizers", func(t *testing.T) { g.in(t).wait() })
	t.Run("are two", func(t *testing.T) { g.in(t).two() })
	t.Run("do not exist", func(t *testing.T) { g.in(t).absent() })
	t.Run("are in another namespace", func(t *testing.T) { g.in(t).elsewhere() })
}

// A forest without a namespace owns trees, a tree owns a config map and a config map a tree: all go with the forest, whatever is asked for.
func (g *grove) severalKinds() {
	for _, policy := range []metav1.DeletionPropagation{background, inFront} {
		forest := g.plant(of("forests", ""), "spessart")
		other := g.plant(of("forests", ""), "steigerwald", forest.holds())
		tree := g.plant(of("trees", "wood"), "oak", forest.holds())
		chart := g.plant(of("configmaps", "wood"), "chart", tree.holds())
		shrub := g.plant(of("trees", "wood"), "hazel", chart.holds())
		far := g.plant(of("configmaps", "meadow"), "far", other.holds())
		near := g.plant(of("trees", "wood"), "free")
		g.fell(forest, policy)
		g.gone(forest, other, tree, chart, shrub, far)
		g.passes()
		g.stand(near)
		g.fell(near, background)
	}
	// Each of a config map and a tree owns one of the other kind, and nothing of the other pair goes.
	chart, tree := g.plant(of("configmaps", "wood"), "owner"), g.plant(of("trees", "wood"), "owner")
	ofChart, ofTree := g.plant(of("trees", "wood"), "dependent", chart.ties()), g.plant(of("configmaps", "wood"), "dependent", tree.ties())
	g.fell(chart, background)
	g.gone(ofChart)
	g.passes()
	g.stand(tree, ofTree)
	g.fell(tree, background)
	g.gone(tree, ofTree)
}

// kubectl delete --cascade=orphan: what is left has no owner, and does not go later.
func (g *grove) leaveOrphans() {
	tree := g.plant(of("trees", "wood"), "elm")
	keeper := g.plant(of("trees", "wood"), "keeper")
	var left []plant
	for i := range 20 {
		collection := of([]string{"trees", "configmaps"}[i%2], "wood")
		left = append(left, g.plant(collection, fmt.Sprintf("leaf-%d", i), tree.holds(), keeper.holds()))
	}
	k := newKubectl(g.T, g.server)
	k.says([]string{`tree.grove.example.com "elm" deleted`}, "delete", "tree", "elm", "-n", "wood", "--cascade=orphan", "--timeout=30s")
	g.gone(tree)
	g.passes()
	g.stand(left...)
	for _, p := range left {
		if o := g.look(p); o == nil || len(o.OwnerReferences) != 1 || string(o.OwnerReferences[0].UID) != keeper.uid {
			g.Errorf("%s: %+v", p.path, o)
		}
	}
	g.fell(keeper, background)
	g.gone(left...)
}

// Objects that own each other go when one of them is deleted, in whichever way.
func (g *grove) cycles() {
	for _, policy := range []metav1.DeletionPropagation{background, inFront} {
		var ring []plant
		for i := range 4 {
			ring = append(ring, g.plant(of([]string{"trees", "configmaps"}[i%2], "wood"), fmt.Sprintf("ring-%d", i)))
		}
		for i, p := range ring {
			g.merge(p.path, encode(g.T, map[string]any{"metadata": map[string]any{"ownerReferences": []tie{ring[(i+1)%len(ring)].holds()}}}))
		}
		g.passes()
		g.stand(ring...)
		g.fell(ring[0], policy)
		g.gone(ring...)
	}
	// One that owns itself.
	self := g.plant(of("trees", "wood"), "self")
	g.merge(self.path, encode(g.T, map[string]any{"metadata": map[string]any{"ownerReferences": []tie{self.holds()}}}))
	g.passes()
	g.stand(self)
	g.fell(self, inFront)
	g.gone(self)
}

// An owner that is deleted in the foreground is there as long as a dependent that holds it; others it does not wait for.
func (g *grove) wait() {
	owner := g.plant(of("trees", "wood"), "ash")
	meta := metav1.ObjectMeta{Name: "slow", OwnerReferences: []tie{owner.holds()}, Finalizers: []string{"grove.example.com/wait"}}
	slow := g.sow(of("configmaps", "wood"), meta)
	quick := g.plant(of("trees", "wood"), "quick", owner.holds())
	meta.Name, meta.OwnerReferences = "loose", []tie{owner.ties()}
	loose := g.sow(of("trees", "wood"), meta)
	g.fell(owner, inFront)
	g.gone(quick)
	for _, p := range []plant{slow, loose} {
		eventually(g.T, soon, p.path+" is being deleted", func() bool { return g.look(p).DeletionTimestamp != nil })
	}
	g.passes()
	if o := g.look(owner); o == nil || o.DeletionTimestamp == nil || !slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents) {
		g.Errorf("the owner does not wait for a dependent with a finalizer: %+v", o)
	}
	g.merge(slow.path, `{"metadata":{"finalizers":null}}`)
	g.gone(slow, owner)
	if g.look(loose) == nil {
		g.Error("a finalizer has not kept an object")
	}
	g.merge(loose.path, `{"metadata":{"finalizers":null}}`)
	g.gone(loose)
}

// With two owners an object goes with the second. Of the first it loses the reference.
func (g *grove) two() {
	for _, policy := range []metav1.DeletionPropagation{background, inFront} {
		forest, tree := g.plant(of("forests", ""), "first"), g.plant(of("trees", "wood"), "second")
		child := g.plant(of("configmaps", "wood"), "child", forest.holds(), tree.holds())
		g.fell(forest, policy)
		g.gone(forest)
		eventually(g.T, soon, "the child has one owner", func() bool {
			o := g.look(child)
			return o != nil && len(o.OwnerReferences) == 1 && string(o.OwnerReferences[0].UID) == tree.uid
		})
		g.passes()
		g.stand(child)
		g.fell(tree, policy)
		g.gone(tree, child)
	}
}

// An owner that does not exist, and one whose name another object has by now, are none. An owner of an unknown kind may exist.
func (g *grove) absent() {
	former := g.plant(of("trees", "wood"), "name")
	g.fell(former, background)
	g.gone(former)
	latter := g.plant(of("trees", "wood"), "name")
	child := g.plant(of("configmaps", "wood"), "of-former", former.ties())
	unknown := tie{APIVersion: "nowhere.example.com/v1", Kind: "Ghost", Name: "ghost", UID: "3c7b4f0e-6f0d-4f3c-8a55-0a54de11aa01"}
	haunted := g.plant(of("configmaps", "wood"), "haunted", unknown)
	g.gone(child)
	g.passes()
	g.stand(latter, haunted)
}

// An owner in another namespace does not count: the object goes. A forest whose owner would have a namespace stays.
func (g *grove) elsewhere() {
	tree := g.plant(of("trees", "meadow"), "linden")
	child := g.plant(of("configmaps", "wood"), "astray", tree.ties())
	forest := g.plant(of("forests", ""), "owned", tree.ties())
	g.gone(child)
	g.passes()
	g.stand(tree, forest)
	g.fell(tree, background)
	g.gone(tree)
	g.passes()
	g.stand(forest)
}
