package exec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Scope says which rules hold for the resource's own metadata.
type Scope uint8

// The scopes.
const (
	AnyScope   Scope = iota // metadata is not checked
	Namespaced              // there has to be a namespace
	Cluster                 // there must be none
)

// Judgement says how to validate.
type Judgement struct {
	Old      *jsondoc.Doc // the object before the change; nil for a new one
	Ratchet  bool         // forgive what is wrong and has not changed
	Typed    bool         // normalization has found every value to be of its type
	Scope    Scope        //
	Rules    Rules        // evaluated, if not nil
	ReadOnly bool         // report read-only values that change
}

// Verdict is what is wrong with an object.
type Verdict struct {
	Errors   []Violation
	Warnings []Violation // violations of rules that were forgiven
	ReadOnly []Violation // read-only values that have changed
	Omitted  int         // violations beyond what an explanation holds
}

const blocked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// Validate judges the object d. Both documents are without duplicate keys, and
// sorted if there is an old one. The result is nil if nothing is to be said.
func Validate(n *plan.Node, d *jsondoc.Doc, j Judgement) *Verdict {
	var verdict *Verdict
	c := newChecker(d, j.Typed)
	valid := c.value(jsondoc.Root, n) && (j.Scope == AnyScope || rootMetadataValid(d, j.Old, j.Scope == Namespaced))
	c.release()
	if !valid {
		verdict = new(Verdict)
		verdict.explain(n, d, j)
	}
	if j.Rules != nil && n.Flags&plan.RulesBelow != 0 {
		verdict = verdict.rules(n, d, j)
	}
	if j.ReadOnly && j.Old != nil && n.Flags&plan.ReadOnlyBelow != 0 {
		verdict = verdict.readOnly(n, d, j.Old)
	}
	if verdict == nil || len(verdict.Errors)+len(verdict.Warnings)+len(verdict.ReadOnly) == 0 {
		return nil
	}
	return verdict
}

// explain collects the violations of everything but rules.
func (r *Verdict) explain(n *plan.Node, d *jsondoc.Doc, j Judgement) {
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
func (r *Verdict) rules(n *plan.Node, d *jsondoc.Doc, j Judgement) *Verdict {
	if r != nil && r.blocks() {
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
		r = new(Verdict)
	}
	r.Errors = append(r.Errors, run.Errors...)
	r.Warnings = append(r.Warnings, run.Warnings...)
	return r
}

// blocks reports whether rules could stumble over the errors.
func (r *Verdict) blocks() bool {
	for i := range r.Errors {
		switch r.Errors[i].Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// readOnly reports the read-only values that are not what they were.
func (r *Verdict) readOnly(n *plan.Node, d, old *jsondoc.Doc) *Verdict {
	w := readOnlyWalk{history: newHistory(d, old)}
	w.value(pairing{node: n, now: jsondoc.Root, was: jsondoc.Root, ok: true})
	if len(w.errs) == 0 {
		return r
	}
	if r == nil {
		r = new(Verdict)
	}
	r.ReadOnly = w.errs
	return r
}
