package crdcontroller

import (
	"fmt"
	"iter"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier/server/catalog"
)

// claims tells which CRDs of a group have or ask for a name.
type claims interface {
	On(s catalog.Space, name string) []*catalog.Entry
}

// award is the names that a CRD gets, and the condition about them.
type award struct {
	names     catalog.Names
	condition v1.CustomResourceDefinitionCondition
	// contended says that another CRD has or wants one of the names that this CRD asks
	// for and does not have.
	contended bool
}

// registrar awards the names of a group as they are at one moment.
type registrar struct {
	claims claims
	awards map[string]*award
	sets   map[*catalog.Names]nameSet // of those that have many
}

// nameSet is a set of names. A CRD may have as many short names as fit into
// a request, and so may the next one, which asks for the same.
type nameSet map[string]struct{}

func setOf(names iter.Seq[string]) nameSet {
	s := nameSet{}
	for name := range names {
		s[name] = struct{}{}
	}
	return s
}

func newRegistrar(c claims) *registrar {
	return &registrar{claims: c, awards: map[string]*award{}, sets: map[*catalog.Names]nameSet{}}
}

// waiting reports whether a CRD has not got all the names it asks for.
// One that is being deleted gets no more.
func waiting(e *catalog.Entry) bool { return !e.Deleting && !e.Accepted.Equal(&e.Names) }

// award decides which names a CRD gets. Those of several kinds are
// given independently of each other, short names all or none. Of several
// conflicts the condition names the last, as upstream's does.
func (r *registrar) award(e *catalog.Entry) *award {
	if a, ok := r.awards[e.Name]; ok {
		return a
	}
	a := &award{names: e.Accepted, condition: v1.CustomResourceDefinitionCondition{
		Type: v1.NamesAccepted, Status: v1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found",
	}}
	r.awards[e.Name] = a
	ask, have := &e.Names, &e.Accepted
	refuse := func(reason string, conflicts ...string) {
		a.condition.Status, a.condition.Reason, a.condition.Message = v1.ConditionFalse, reason, aggregate(conflicts)
	}
	one := func(s catalog.Space, reason, wanted string, given *string) {
		if wanted == *given { // so far those that it has
			return
		}
		if r.taken(e, a, s, wanted) {
			refuse(reason, inUse(wanted))
			return
		}
		*given = wanted
	}
	one(catalog.Resources, "PluralConflict", ask.Plural, &a.names.Plural)
	one(catalog.Resources, "SingularConflict", ask.Singular, &a.names.Singular)
	if !slices.Equal(ask.ShortNames, have.ShortNames) {
		var conflicts []string
		own := setOf(slices.Values(have.ShortNames))
		for _, name := range ask.ShortNames {
			if _, ok := own[name]; !ok && r.taken(e, a, catalog.Resources, name) {
				conflicts = append(conflicts, inUse(name))
			}
		}
		if len(conflicts) > 0 {
			refuse("ShortNamesConflict", conflicts...)
		} else {
			a.names.ShortNames = ask.ShortNames
		}
	}
	one(catalog.Kinds, "KindConflict", ask.Kind, &a.names.Kind)
	one(catalog.Kinds, "ListKindConflict", ask.ListKind, &a.names.ListKind)
	a.names.Categories = ask.Categories
	return a
}

func inUse(name string) string { return fmt.Sprintf("%q is already in use", name) }

// taken reports whether a name that e asks for and has not in that place is in
// use: accepted, be it for e itself under another heading, as upstream counts
// it, or about to be awarded to a CRD that asked before e.
func (r *registrar) taken(e *catalog.Entry, a *award, s catalog.Space, name string) bool {
	others := r.claims.On(s, name)
	taken := false
	for _, x := range others {
		a.contended = a.contended || x.Name != e.Name
		taken = taken || r.has(&x.Accepted, s, name)
	}
	if taken {
		return true
	}
	for _, x := range others {
		// Revisions decrease from one to the next, so this ends.
		if x.Name != e.Name && x.Revision < e.Revision && waiting(x) && r.has(&r.award(x).names, s, name) {
			return true
		}
	}
	return false
}

// has reports whether a name is among names, which do not change any more.
func (r *registrar) has(names *catalog.Names, s catalog.Space, name string) bool {
	const few = 16
	if s == catalog.Kinds || len(names.ShortNames) <= few {
		for have := range names.All(s) {
			if have == name {
				return true
			}
		}
		return false
	}
	all, ok := r.sets[names]
	if !ok {
		all = setOf(names.All(s))
		r.sets[names] = all
	}
	_, ok = all[name]
	return ok
}
