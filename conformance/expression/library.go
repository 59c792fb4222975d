package expression

import (
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A signature is one overload of a function or operator.
type signature struct {
	function, id string
	args         []*types.Type
	result       *types.Type
	member       bool
}

// newest is the newest version that the reference's libraries are declared for.
var newest = version.MajorMinor(1, 37)

// library is what the reference's environment declares, in the order of its overloads' names.
var library = sync.OnceValue(func() []signature {
	var list []signature
	for name, f := range environment.MustBaseEnvSet(newest).StoredExpressionsEnv().Functions() {
		if f.IsDeclarationDisabled() || strings.Contains(name, "@") && name != "@in" || name == "_?._" {
			continue // macros use these, and a select is no call
		}
		for _, o := range f.OverloadDecls() {
			if s := (signature{name, o.ID(), o.ArgTypes(), o.ResultType(), o.IsMemberFunction()}); !s.authorizes() {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b signature) int { return strings.Compare(a.id, b.id) })
	return list
})

// authorizes tells the library of authorizers. Rules of CRDs have no variable of its types.
func (s *signature) authorizes() bool {
	const prefix = "kubernetes.authorization."
	return strings.HasPrefix(s.result.TypeName(), prefix) || slices.ContainsFunc(s.args, func(t *types.Type) bool { return strings.HasPrefix(t.TypeName(), prefix) })
}

// syntax is what expressions are made of besides calls.
var syntax = []string{
	"macro has", "macro all", "macro exists", "macro exists_one", "macro map", "macro map filtered", "macro filter", "macro optMap", "macro optFlatMap",
	"macro all of pairs", "macro exists of pairs", "macro existsOne of pairs", "macro exists_one of pairs", "macro transformList", "macro transformList filtered",
	"macro transformMap", "macro transformMap filtered", "macro transformMapEntry", "macro transformMapEntry filtered", "macro sortBy",
	"select", "optional select", "list literal", "map literal", "optional element", "optional entry",
}

// Rows names everything that an expression can use: the overloads of the reference's environment, macros, and syntax.
func Rows() []string {
	var list []string
	for _, s := range library() {
		list = append(list, s.id)
	}
	return append(list, syntax...)
}

// bindings are the types of type parameters.
type bindings map[string]*types.Type

// unify finds the parameters of a declared type that make it want, and reports whether there are any.
func unify(declared, want *types.Type, b bindings) bool {
	if declared.Kind() == types.TypeParamKind {
		if bound := b[declared.TypeName()]; bound != nil {
			return same(bound, want)
		}
		b[declared.TypeName()] = want
		return true
	}
	if declared.Kind() != want.Kind() || declared.TypeName() != want.TypeName() || len(declared.Parameters()) != len(want.Parameters()) {
		return false
	}
	for i, p := range declared.Parameters() {
		if !unify(p, want.Parameters()[i], b) {
			return false
		}
	}
	return true
}

func same(a, b *types.Type) bool { return a.String() == b.String() }

// apply replaces the parameters of a declared type; other chooses those that are free.
func (b bindings) apply(t *types.Type, other func() *types.Type) *types.Type {
	switch t.Kind() {
	case types.TypeParamKind:
		bound := b[t.TypeName()]
		if bound == nil {
			bound = other()
			b[t.TypeName()] = bound
		}
		return bound
	case types.ListKind:
		return types.NewListType(b.apply(t.Parameters()[0], other))
	case types.MapKind:
		return types.NewMapType(b.apply(t.Parameters()[0], other), b.apply(t.Parameters()[1], other))
	case types.OpaqueKind:
		if isOptional(t) {
			return types.NewOptionalType(b.apply(t.Parameters()[0], other))
		}
	case types.TypeKind:
		if len(t.Parameters()) == 1 {
			return types.NewTypeTypeWithParam(b.apply(t.Parameters()[0], other))
		}
	}
	return t
}

// returning lists the signatures whose result can be t.
func returning(t *types.Type) []*signature {
	var list []*signature
	all := library()
	for i := range all {
		if unify(all[i].result, t, bindings{}) {
			list = append(list, &all[i])
		}
	}
	return list
}

func isOptional(t *types.Type) bool {
	return t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type"
}
