package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// parser knows the syntax and the macros of all versions.
var parser = sync.OnceValue(func() *cel.Env {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
})

// parsed is an expression of a schema, as a tree in which macros are expanded.
type parsed struct {
	rule  *syntax.Rule
	index int
	tree  *ast.AST
}

// parse reads the rules of a schema. Those that do not parse are left out.
func parse(s *syntax.Schema) []parsed {
	var list []parsed
	for i := range s.Validations {
		r := &s.Validations[i]
		if strings.TrimSpace(r.Rule) == "" {
			continue
		}
		if t, issues := parser().Parse(r.Rule); issues.Err() == nil {
			list = append(list, parsed{r, i, t.NativeRep()})
		}
	}
	return list
}

// expressions looks at the rules of a schema.
func (c *checker) expressions(n *node) {
	if len(n.schema.Validations) == 0 {
		return
	}
	list := parse(n.schema)
	c.weigh(n, list)
	c.unguarded(n, list)
	c.unions(n, list)
	for _, p := range list {
		if p.rule.Message == "" && p.rule.MessageExpression == "" {
			c.atRule("rule-message-missing", n, p.index, p.rule.At("rule"), "without a message, users see the expression", "message: what the value must be, and why")
		}
		if n.keyword == "properties" && !n.required && n.schema.Default == nil && isUnchanged(p.tree.Expr()) && !watched(n) {
			c.immutable(n, p)
		}
	}
}

// immutable reports a rule that a client gets around by removing the field. The rule of
// the fix refuses more: to remove the field is what the rule is to prevent.
func (c *checker) immutable(n *node, p parsed) {
	name := identifier(n.name)
	rule := fmt.Sprintf("!has(oldSelf.%[1]s) || has(self.%[1]s)", name)
	message := n.name + " cannot be removed once it is set"
	found := c.atRule("immutable-optional", n, p.index, p.rule.At("rule"),
		fmt.Sprintf("%s is optional: the CEL rule rejects changes of its value, but a client can remove it with one write and set another value with the next", n.name),
		fmt.Sprintf("Add a CEL rule to the parent that refuses to remove %s, or require the field.", n.name))
	added := fmt.Sprintf(`{"rule":%s,"message":%s}`, jsonString(rule), jsonString(message))
	change := insertInto(n.parent.schema.Offset, `"x-kubernetes-validations":[`+added+`],`)
	if len(n.parent.schema.Validations) > 0 {
		change = insertInto(n.parent.schema.At("x-kubernetes-validations"), added+",")
	}
	if !n.parent.schema.Has("x-kubernetes-validations") || len(n.parent.schema.Validations) > 0 {
		c.propose(found, fmt.Sprintf("# On the parent schema. Updates that remove %s are refused then.\nx-kubernetes-validations:\n- rule: %s\n  message: %s", plain(n.name), quote(rule), quote(message)), change)
	}
}

// isUnchanged recognises self == oldSelf.
func isUnchanged(e ast.Expr) bool {
	a, b, ok := binary(e, operators.Equals)
	return ok && (isIdent(a, "self") && isIdent(b, "oldSelf") || isIdent(a, "oldSelf") && isIdent(b, "self"))
}

// watched reports whether a rule around n looks at whether n was there before: it names
// n, or nothing in the object may change.
func watched(n *node) bool {
	name := identifier(n.name)
	within := n.keyword == "properties" // everything from n to m is a field
	for m := n.parent; m != nil; m = m.parent {
		if m.before == nil {
			m.before = transitions(m.schema)
			m.frozen = slices.ContainsFunc(parse(m.schema), func(p parsed) bool { return isUnchanged(p.tree.Expr()) })
		}
		if m.before[name] || within && m.frozen {
			return true
		}
		within = within && m.keyword == "properties"
	}
	return false
}

var word = regexp.MustCompile(`\w+`)

// transitions returns the words in the rules of a schema that look at the old
// value.
func transitions(s *syntax.Schema) map[string]bool {
	words := map[string]bool{}
	for i := range s.Validations {
		if rule := s.Validations[i].Rule; strings.Contains(rule, "oldSelf") {
			for _, w := range word.FindAllString(rule, -1) {
				words[w] = true
			}
		}
	}
	return words
}

func isIdent(e ast.Expr, name string) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == name }

// call returns the arguments of a function, the target first.
func call(e ast.Expr, name string) ([]ast.Expr, bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != name {
		return nil, false
	}
	x := e.AsCall()
	if x.IsMemberFunction() {
		return append([]ast.Expr{x.Target()}, x.Args()...), true
	}
	return x.Args(), true
}

func binary(e ast.Expr, operator string) (a, b ast.Expr, ok bool) {
	if args, ok := call(e, operator); ok && len(args) == 2 {
		return args[0], args[1], true
	}
	return nil, nil, false
}
