package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
)

// Function is a function or macro that rules may call.
type Function struct {
	Name  string
	Macro bool
	// Receivers are the types of values that it is called on, as in value.name(): string, list, map, int, and so on;
	// any for all of them. None if it is called without a value.
	Receivers []string
	// Signatures show types of arguments and results, such as string.startsWith(string) -> bool.
	Signatures []string
}

// Functions lists the functions and macros of the API server's CEL environment by name. compatibility is
// the Kubernetes version, as in CheckOptions. Operators are not among them.
func Functions(compatibility string) ([]Function, error) {
	l, err := newRulesLanguage(compatibility)
	if err != nil {
		return nil, err
	}
	var all []Function
	for name, f := range l.env.Functions() {
		if !callable(name) { // so are those that the environment disables
			continue
		}
		var member, global Function
		for _, o := range f.OverloadDecls() {
			into := &global
			if o.IsMemberFunction() {
				into = &member
				if receiver := receiver(o); !slices.Contains(member.Receivers, receiver) {
					member.Receivers = append(member.Receivers, receiver)
				}
			}
			into.Signatures = append(into.Signatures, signature(name, o))
		}
		for _, found := range []Function{member, global} {
			if len(found.Signatures) > 0 {
				found.Name = name
				slices.Sort(found.Receivers)
				slices.Sort(found.Signatures)
				all = append(all, found)
			}
		}
	}
	for _, m := range l.env.Macros() {
		f := Function{Name: m.Function(), Macro: true}
		if m.IsReceiverStyle() {
			f.Receivers = []string{"list", "map"}
			if strings.HasPrefix(f.Name, "opt") {
				f.Receivers = []string{"optional"}
			}
		}
		if !slices.ContainsFunc(all, func(x Function) bool { return x.Macro && x.Name == f.Name }) {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// callable reports whether a name is one that rules write: those of operators are not.
func callable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '.' && c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != "" && name != "in"
}

func receiver(o *decls.OverloadDecl) string {
	args := o.ArgTypes()
	if len(args) == 0 {
		return "any"
	}
	switch args[0].Kind() {
	case types.ListKind:
		return "list"
	case types.MapKind:
		return "map"
	case types.TypeParamKind, types.DynKind, types.AnyKind:
		return "any"
	}
	if name := args[0].TypeName(); name != "optional_type" {
		return name
	}
	return "optional"
}

func signature(name string, o *decls.OverloadDecl) string {
	var b strings.Builder
	args := o.ArgTypes()
	if o.IsMemberFunction() && len(args) > 0 {
		b.WriteString(args[0].String() + ".")
		args = args[1:]
	}
	b.WriteString(name + "(")
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	b.WriteString(") -> " + o.ResultType().String())
	return b.String()
}
