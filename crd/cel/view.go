package cel

import (
	"sync"

	"github.com/espalier-dev/espalier/internal/plan"
)

// resources holds what rules see of resources: every resource, the object
// itself or one embedded in it, has apiVersion, kind and metadata, and of
// metadata rules see name and generateName, whatever its schema says.
type resources struct {
	views sync.Map // *plan.Node of a resource → *plan.Node that rules see
}

// view returns the node that rules see of a resource's node. Nodes must live as
// long as r.
func (r *resources) view(n *plan.Node) *plan.Node {
	if plan.SpecifiesMeta(n) {
		return n
	}
	if v, ok := r.views.Load(n); ok {
		return v.(*plan.Node)
	}
	v, _ := r.views.LoadOrStore(n, withMeta(n))
	return v.(*plan.Node)
}

// Lengths of names in metadata: those of a DNS subdomain, less the shortest
// suffix that a name can be generated with.
const (
	maxName         = 253
	maxGenerateName = maxName - 1
)

// anyString is a string without constraints.
var anyString = &plan.Node{Type: plan.String}

// withMeta returns n with the fields that all resources have. The result is not
// shared: it is no part of a plan.
func withMeta(n *plan.Node) *plan.Node {
	meta := n.Property("metadata")
	fields := map[string]*plan.Node{
		"apiVersion": anyString,
		"kind":       anyString,
		"metadata": {Type: plan.Object, Props: plan.NewProps([]plan.Prop{
			{Name: "name", Node: shortString(meta.Property("name"), maxName)},
			{Name: "generateName", Node: shortString(meta.Property("generateName"), maxGenerateName)},
		})},
	}
	list := make([]plan.Prop, 0, n.Props.Len()+len(fields))
	for i := range n.Props.Len() {
		if p := n.Props.At(i); fields[p.Name] == nil {
			list = append(list, *p)
		}
	}
	for name, f := range fields {
		list = append(list, plan.Prop{Name: name, Node: f})
	}
	return &plan.Node{
		Accepts: n.Accepts, Type: n.Type, Flags: n.Flags, Props: plan.NewProps(list),
		Additional: n.Additional, Rare: n.Rare, Asserts: n.Asserts,
	}
}

// shortString returns a string of at most length characters, or fewer if n says
// so.
func shortString(n *plan.Node, length int64) *plan.Node {
	if n != nil {
		if stated, ok := bound(n, plan.MaxLength); ok {
			length = min(length, stated)
		}
	}
	return &plan.Node{Type: plan.String, Asserts: []plan.Assert{{Op: plan.MaxLength, Num: uint64(length)}}}
}

// assertion returns n's assertion of the given kind, or nil.
func assertion(n *plan.Node, op plan.Op) *plan.Assert {
	for i := range n.Asserts {
		if n.Asserts[i].Op == op {
			return &n.Asserts[i]
		}
	}
	return nil
}

// bound returns the value of one of n's bounds on lengths.
func bound(n *plan.Node, op plan.Op) (int64, bool) {
	if a := assertion(n, op); a != nil {
		return int64(a.Num), true
	}
	return 0, false
}

// substitutions finds the nodes with rules that the schema specifies within the
// metadata of a resource while rules of the resource see something else there.
// Their own rules are compiled for what is seen: for a view of them, or, where
// nothing is seen, not at all (nil). There rarely are any.
func (r *resources) substitutions(root *plan.Node, resource bool) map[*plan.Node]*plan.Node {
	d := substitutions{views: r}
	if resource {
		d.resource(root)
	}
	if root.Flags&plan.EmbeddedBelow != 0 {
		d.seen = map[*plan.Node]bool{}
		d.walk(root)
	}
	return d.found
}

type substitutions struct {
	views *resources
	found map[*plan.Node]*plan.Node
	seen  map[*plan.Node]bool
}

// walk looks for embedded resources.
func (d *substitutions) walk(n *plan.Node) {
	const both = plan.EmbeddedBelow | plan.RulesBelow
	if n == nil || n.Flags&both != both || d.seen[n] {
		return
	}
	d.seen[n] = true
	if isEmbedded(n) {
		d.resource(n)
	}
	d.walk(n.Items)
	d.walk(n.Additional)
	for i := range n.Props.Len() {
		d.walk(n.Props.At(i).Node)
	}
}

// resource compares what a resource's node says with what rules see of it.
func (d *substitutions) resource(n *plan.Node) {
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		said := n.Property(name)
		if said == nil || said.Flags&plan.RulesBelow == 0 {
			continue
		}
		if seen := d.views.view(n); seen != n {
			d.compare(said, seen.Property(name))
		}
	}
}

func (d *substitutions) compare(said, seen *plan.Node) {
	if said == nil || said == seen || said.Flags&plan.RulesBelow == 0 {
		return
	}
	if said.Rare != nil && len(said.Rare.Rules) > 0 {
		if d.found == nil {
			d.found = map[*plan.Node]*plan.Node{}
		}
		d.found[said] = seen
	}
	for i := range said.Props.Len() {
		p := said.Props.At(i)
		d.compare(p.Node, seen.Property(p.Name))
	}
	if seen == nil {
		d.compare(said.Items, nil)
		d.compare(said.Additional, nil)
	}
}
