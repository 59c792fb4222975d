package exec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Scope says which requirements the object's own metadata must meet.
type Scope uint8

// The scopes.
const (
	AnyScope   Scope = iota // metadata is not checked
	Namespaced              // metadata.namespace must be set
	Cluster                 // metadata.namespace must be empty
)

// ValidateOptions says how to validate.
type ValidateOptions struct {
	Old      *jsondoc.Doc // the object before the change; nil for a new one
	Ratchet  bool         // drop errors in values that have not changed
	Typed    bool         // normalization has found every value to be of its type
	Scope    Scope        //
	Rules    Rules        // evaluated, if not nil
	ReadOnly bool         // report read-only values that change
	// Counts says which errors keep rules from being evaluated if they are of a type that does; nil if all of them.
	// A request that writes a part of an object is not refused for errors in the rest.
	Counts func(*Violation) bool
}

// Result is the errors of an object.
type Result struct {
	Errors   []Violation
	Warnings []Violation // violations of CEL rules in unchanged values (ratcheting)
	ReadOnly []Violation // read-only values that have changed
	Omitted  int         // violations beyond what an explanation holds
}

const blocked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// Validate validates the object d. Both documents must be without duplicate keys,
// and sorted if there is an old one. The result is nil if it would be empty.
func Validate(n *plan.Node, d *jsondoc.Doc, j ValidateOptions) *Result {
	var result *Result
	c := newChecker(d, j.Typed)
	valid := c.value(jsondoc.Root, n) && (j.Scope == AnyScope || rootMetadataValid(d, j.Old, j.Scope == Namespaced))
	c.release()
	if !valid {
		result = new(Result)
		result.explain(n, d, j)
	}
	if j.Rules != nil && n.Flags&plan.RulesBelow != 0 {
		result = result.rules(n, d, j)
	}
	if j.ReadOnly && j.Old != nil && n.Flags&plan.ReadOnlyBelow != 0 {
		result = result.readOnly(n, d, j.Old)
	}
	if result == nil || len(result.Errors)+len(result.Warnings)+len(result.ReadOnly) == 0 {
		return nil
	}
	return result
}

// explain collects the violations of everything but rules.
func (r *Result) explain(n *plan.Node, d *jsondoc.Doc, j ValidateOptions) {
	if j.Scope != AnyScope {
		r.Errors = append(r.Errors, RootMetadata(d, j.Old, j.Scope == Namespaced)...)
	}
	e := explainer{d: d}
	if j.Old != nil && j.Ratchet {
		e.history = newHistory(d, j.Old)
	}
	e.value(jsondoc.Root, n, e.history.root(n))
	r.Errors = append(r.Errors, e.unique()...)
	r.Omitted = e.failures - len(e.errs)
	if n.Flags&plan.EmbeddedBelow != 0 {
		r.Errors = append(r.Errors, inspect(d, n, plan.EmbeddedBelow)...)
	}
	// An object with duplicates may keep them, and get others.
	if n.Flags&plan.ListsBelow != 0 && (j.Old == nil || len(inspect(j.Old, n, plan.ListsBelow)) == 0) {
		r.Errors = append(r.Errors, inspect(d, n, plan.ListsBelow)...)
	}
}

// rules evaluates the rules, unless errors block it.
func (r *Result) rules(n *plan.Node, d *jsondoc.Doc, j ValidateOptions) *Result {
	if r != nil && r.blocks(j.Counts) {
		r.Errors = append(r.Errors, Violation{
			Type: field.ErrorTypeInvalid, Path: "<nil>", Detail: blocked, Keyword: "x-kubernetes-validations",
		})
		return r
	}
	run := RuleRun{Node: n, Doc: d, Old: j.Old, ratchet: j.Ratchet}
	j.Rules.Run(&run)
	if len(run.Errors)+len(run.Warnings) == 0 {
		return r
	}
	if r == nil {
		r = new(Result)
	}
	r.Errors = append(r.Errors, run.Errors...)
	r.Warnings = append(r.Warnings, run.Warnings...)
	return r
}

// blocks reports whether the errors keep CEL rules from being evaluated: upstream
// does not evaluate them on values of the wrong type or size.
func (r *Result) blocks(counts func(*Violation) bool) bool {
	for i := range r.Errors {
		switch r.Errors[i].Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			if counts == nil || counts(&r.Errors[i]) {
				return true
			}
		}
	}
	return false
}

// readOnly reports the read-only values that have changed.
func (r *Result) readOnly(n *plan.Node, d, old *jsondoc.Doc) *Result {
	w := readOnlyWalk{history: newHistory(d, old)}
	w.value(pairing{node: n, now: jsondoc.Root, was: jsondoc.Root, ok: true})
	if len(w.errs) == 0 {
		return r
	}
	if r == nil {
		r = new(Result)
	}
	r.ReadOnly = w.errs
	return r
}
