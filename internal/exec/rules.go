package exec

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Rules are the compiled x-kubernetes-validations of a schema. Package cel
// implements them; exec knows where in an object they apply.
type Rules interface {
	// Run evaluates the rules on the object of run. It is called only if
	// nothing blocks it: upstream does not evaluate rules on an object whose
	// values have the wrong type, are missing, too long, too many or unknown.
	Run(run *RuleRun)
}

// RuleRun is one evaluation of the rules of a schema on an object.
type RuleRun struct {
	Node *plan.Node   // the root of the plan
	Doc  *jsondoc.Doc // the object
	Old  *jsondoc.Doc // what it was before; nil for a new object

	Errors   []Violation // appended to by Run
	Warnings []Violation // violations in unchanged values (ratcheting)

	history *history // nil for a new object
	ratchet bool     // drop errors in unchanged values
	path    path
}

// RuleSite is a value with rules.
type RuleSite struct {
	Node     *plan.Node
	Value    jsondoc.Value // in the run's Doc; never null
	Old      jsondoc.Value // in the run's Old, if HasOld; never null
	HasOld   bool          // there is an old value that correlates with this one
	Resource bool          // the value is the root or an embedded resource: rules see its apiVersion, kind and metadata

	run       *RuleRun
	own       pairing // with the value before, if the value has one
	nearest   pairing // of the closest value above that has one
	fixed     bool    // no ratcheting here
	namesOnly bool    // the metadata of a resource, CEL rules see only its names
}

// Path returns the field path of the value, "" for the root.
func (s *RuleSite) Path() string { return s.run.path.field() }

// Unchanged reports whether ratcheting applies to violations of rules that do not
// use oldSelf, because the value, or a value around it, has not changed.
func (s *RuleSite) Unchanged() bool {
	if !s.run.ratchet || s.fixed {
		return false
	}
	if s.own.ok {
		return s.run.history.unchanged(s.own)
	}
	return s.run.history.unchanged(s.nearest)
}

// Visit calls f for every value that has rules, parents before children, until
// f returns false.
func (r *RuleRun) Visit(f func(*RuleSite) bool) {
	r.path = r.path[:0]
	if r.Node.Flags&plan.RulesBelow == 0 {
		return
	}
	s := RuleSite{run: r, Node: r.Node, Value: jsondoc.Root, Resource: true}
	if r.Old != nil {
		if r.history == nil {
			r.history = newHistory(r.Doc, r.Old)
		}
		s.own = r.history.root(r.Node)
	}
	s.visit(f)
}

func (s *RuleSite) visit(f func(*RuleSite) bool) bool {
	r := s.run
	kind := r.Doc.Kind(s.Value)
	if kind == jsondoc.Null || s.Node.Flags&plan.RulesBelow == 0 {
		return true
	}
	if s.Node.Rare != nil && len(s.Node.Rare.Rules) > 0 {
		s.HasOld = s.own.ok && r.Old.Kind(s.own.was) != jsondoc.Null
		s.Old = s.own.was
		if !f(s) {
			return false
		}
	}
	switch kind {
	case jsondoc.Object:
		return s.members(f)
	case jsondoc.Array:
		return s.items(f)
	}
	return true
}

func (s *RuleSite) members(f func(*RuleSite) bool) bool {
	r := s.run
	root := s.Value == jsondoc.Root
	visit := func(k, was jsondoc.Value, ok bool) bool {
		key := r.Doc.Key(k)
		child, kind := s.Node.Additional, keyStep
		if rank := s.Node.Props.Lookup(key); rank >= 0 {
			child, kind = s.Node.Props.At(rank).Node, fieldStep
		}
		if child == nil || child.Flags&(plan.RulesBelow|plan.Exposed) != plan.RulesBelow|plan.Exposed {
			return true
		}
		if s.namesOnly && string(key) != "name" && string(key) != "generateName" {
			return true
		}
		c := s.child(child, k+1)
		c.namesOnly = s.Resource && string(key) == "metadata" && !plan.SpecifiesMeta(s.Node)
		if s.own.ok {
			c.own = pairing{node: child, now: k + 1, was: was, ok: ok}
			// Ratcheting does not apply to fields that the API server sets.
			c.fixed = root && (string(key) == "apiVersion" || string(key) == "kind")
		}
		r.path = append(r.path, step{kind: kind, key: key})
		more := c.visit(f)
		r.path = r.path[:len(r.path)-1]
		return more
	}
	if s.own.ok {
		more := true
		r.history.members(s.own, func(k, was jsondoc.Value, ok bool) bool {
			more = visit(k, was, ok)
			return more
		})
		return more
	}
	end := r.Doc.Next(s.Value)
	for k := s.Value + 1; k < end; k = r.Doc.Next(k + 1) {
		if !visit(k, 0, false) {
			return false
		}
	}
	return true
}

func (s *RuleSite) items(f func(*RuleSite) bool) bool {
	r := s.run
	items := s.Node.Items
	if items == nil || items.Flags&plan.RulesBelow == 0 {
		return true
	}
	for i, v := range r.Doc.Items(s.Value) {
		c := s.child(items, v)
		if s.own.ok {
			c.own = r.history.item(s.own, v)
		}
		r.path = append(r.path, step{kind: indexStep, index: i})
		more := c.visit(f)
		r.path = r.path[:len(r.path)-1]
		if !more {
			return false
		}
	}
	return true
}

// child returns the site of a value within s, not yet paired.
func (s *RuleSite) child(n *plan.Node, v jsondoc.Value) RuleSite {
	c := RuleSite{run: s.run, Node: n, Value: v, Resource: n.Flags&plan.Embedded != 0, nearest: s.nearest, fixed: s.fixed}
	if s.own.ok {
		c.nearest = s.own
	}
	return c
}
