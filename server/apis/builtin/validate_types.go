package builtin

import (
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-dev/espalier/crd/cel/celsize"
)

// typesTooLarge says so if an expression would make a type that is too large. What
// cannot be parsed is left to the compiler to complain about.
func typesTooLarge(bound *celsize.Bound, expression string) string {
	env, err := baseEnvironment().Env(environment.StoredExpressions)
	if err != nil {
		return ""
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil || !bound.TooLarge(parsed.NativeRep().Expr()) {
		return ""
	}
	return celsize.Reason
}
