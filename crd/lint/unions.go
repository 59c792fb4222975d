package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// unions finds unions that are spelled out in the rules of n. The rules of a
// union with a discriminator, one for each member, are one finding.
func (c *checker) unions(n *node, list []parsed) {
	if !c.on["union-as-rule"] {
		return
	}
	var discriminator string
	var first *parsed
	var members, fields []string
	for i := range list {
		p := &list[i]
		if names, one := exclusive(p.tree.Expr()); n.specifies(names) {
			c.union(n, p, names, one)
			continue
		}
		d, field, value := discriminated(p.tree.Expr())
		if d == "" || !n.specifies([]string{field}) || first != nil && d != discriminator {
			continue
		}
		if first == nil {
			first, discriminator = p, d
		}
		fields = append(fields, field)
		members = append(members, field+": "+value)
	}
	// One member is no union, at least not yet.
	if len(members) > 1 {
		// No code: kubectl refuses the keyword, and oneOf says the same with errors
		// that users do not understand.
		c.atRule("union-as-rule", n, first.index, first.rule.At("rule"),
			fmt.Sprintf("CEL rules implement a union of %s with the discriminator %s, which documentation, editors and clients cannot see", strings.Join(fields, ", "), discriminator),
			fmt.Sprintf("Keep the CEL rules, and describe the union at %s: %s.", discriminator, strings.Join(members, ", ")))
	}
}

// specifies reports whether there are names, all of properties.
func (n *node) specifies(names []string) bool {
	for _, name := range names {
		if n.schema.Property(name) == nil {
			return false
		}
	}
	return len(names) > 0
}

// union reports a rule that says how many of several fields are set. The fix accepts the
// same objects: has() and required both ask for the key. A null is different: oneOf
// refuses it in place of the object, and rules are not evaluated.
func (c *checker) union(n *node, p *parsed, names []string, one bool) {
	advice := "Write oneOf with required: [field] in each branch."
	if !one {
		advice = "Write oneOf with required: [field] in each branch, and a branch with not for none of them."
	}
	found := c.atRule("union-as-rule", n, p.index, p.rule.At("rule"),
		fmt.Sprintf("the CEL rule implements a union of %s, which documentation, editors and clients cannot see", strings.Join(names, ", ")), advice)
	if n.schema.Nullable || n.schema.Has("oneOf") || slices.ContainsFunc(names, func(name string) bool { return n.schema.Property(name).Nullable }) {
		return
	}
	var code, branches strings.Builder
	code.WriteString("# In place of the rule. It accepts the same objects, with another error for the others.\noneOf:")
	for _, name := range names {
		fmt.Fprintf(&code, "\n- required: [%s]", plain(name))
		fmt.Fprintf(&branches, `,{"required":[%s]}`, jsonString(name))
	}
	members := branches.String()[1:]
	if !one {
		code.WriteString("\n- not:\n    anyOf:" + strings.ReplaceAll(code.String()[strings.Index(code.String(), "oneOf:")+len("oneOf:"):], "\n", "\n    "))
		members += `,{"not":{"anyOf":[` + members + `]}}`
	}
	c.propose(found, code.String(), insertInto(n.schema.Offset, `"oneOf":[`+members+`],`))
}

// plain writes a name in YAML.
func plain(name string) string {
	if word.FindString(name) == name && strings.ContainsFunc(name, unicode.IsLetter) {
		return name
	}
	return quote(name)
}

// exclusive recognises expressions that say how many of several fields are set,
// and returns the fields and whether it is exactly one.
func exclusive(e ast.Expr) (fields []string, one bool) {
	if a, b, ok := binary(e, operators.NotEquals); ok {
		if fields := both(a, b); fields != nil {
			return fields, true // has(self.a) != has(self.b)
		}
	}
	if fields, one := counted(e); len(fields) > 1 {
		return fields, one
	}
	return nil, false
}

// both returns the fields that a and b ask for.
func both(a, b ast.Expr) []string {
	x, y := asked(a), asked(b)
	if x == "" || y == "" || x == y {
		return nil
	}
	return []string{x, y}
}

// asked returns the field in has(self.field).
func asked(e ast.Expr) string {
	if e.Kind() != ast.SelectKind {
		return ""
	}
	s := e.AsSelect()
	if !s.IsTestOnly() || !isIdent(s.Operand(), "self") {
		return ""
	}
	return property(s.FieldName())
}

// counted recognises (has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1, and
// [has(self.a), has(self.b)].filter(x, x).size() == 1 or .exists_one(x, x).
func counted(e ast.Expr) (fields []string, one bool) {
	if a, b, ok := binary(e, operators.LessEquals); ok && isInt(b, 1) {
		return several(a), false
	}
	if a, b, ok := binary(e, operators.Equals); ok {
		switch {
		case isInt(b, 1):
			return several(a), true
		case isInt(a, 1):
			return several(b), true
		}
	}
	if e.Kind() == ast.ComprehensionKind {
		// exists_one counts in an integer.
		if x := e.AsComprehension(); isInt(x.AccuInit(), 0) && counts(x) {
			return distinct(listed(x.IterRange())), true
		}
	}
	return nil, false
}

// several returns the fields that a number counts.
func several(e ast.Expr) []string {
	if fields := summed(e); len(fields) > 1 {
		return distinct(fields)
	}
	if args, ok := call(e, "size"); ok && len(args) == 1 && args[0].Kind() == ast.ComprehensionKind {
		if x := args[0].AsComprehension(); counts(x) {
			return distinct(listed(x.IterRange()))
		}
	}
	return nil
}

// counts reports whether a macro looks at the elements that are true: its step is
// x ? … : …, as that of filter and of exists_one.
func counts(x ast.ComprehensionExpr) bool {
	step, ok := call(x.LoopStep(), operators.Conditional)
	return ok && len(step) == 3 && isIdent(step[0], x.IterVar())
}

// distinct returns fields, none if one is there twice.
func distinct(fields []string) []string {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f] {
			return nil
		}
		seen[f] = true
	}
	return fields
}

func isInt(e ast.Expr, n int64) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral().Value() == any(n)
}

// summed returns the fields in a sum of (has(self.x) ? 1 : 0).
func summed(e ast.Expr) []string {
	if a, b, ok := binary(e, operators.Add); ok {
		x, y := summed(a), summed(b)
		if x == nil || y == nil {
			return nil
		}
		return append(x, y...)
	}
	args, ok := call(e, operators.Conditional)
	if !ok || len(args) != 3 || !isInt(args[1], 1) || !isInt(args[2], 0) {
		return nil
	}
	if f := asked(args[0]); f != "" {
		return []string{f}
	}
	return nil
}

// listed returns the fields in [has(self.a), has(self.b)].
func listed(e ast.Expr) []string {
	if e.Kind() != ast.ListKind {
		return nil
	}
	var fields []string
	for _, x := range e.AsList().Elements() {
		f := asked(x)
		if f == "" {
			return nil
		}
		fields = append(fields, f)
	}
	return fields
}

// discriminated recognises self.type == 'A' ? has(self.a) : !has(self.a) and
// returns type, a and A.
func discriminated(e ast.Expr) (discriminator, field, value string) {
	if args, ok := call(e, operators.Conditional); ok && len(args) == 3 {
		d, v, equal := compared(args[0])
		x, y := args[1], args[2]
		if !equal {
			x, y = y, x
		}
		if not, ok := call(y, operators.LogicalNot); ok && asked(x) != "" && asked(not[0]) == asked(x) {
			return d, asked(x), v
		}
	}
	if a, b, ok := binary(e, operators.Equals); ok {
		if asked(a) == "" {
			a, b = b, a
		}
		if d, v, equal := compared(b); asked(a) != "" && equal {
			return d, asked(a), v
		}
	}
	return "", "", ""
}

// compared recognises self.field == 'text' or !=, also after has(self.field) &&.
func compared(e ast.Expr) (field, value string, equal bool) {
	if a, b, ok := binary(e, operators.LogicalAnd); ok && asked(a) != "" {
		// The negation of both together is another thing than !=.
		if field, value, equal := compared(b); equal {
			return field, value, true
		}
		return "", "", true
	}
	for _, operator := range []string{operators.Equals, operators.NotEquals} {
		a, b, ok := binary(e, operator)
		if !ok {
			continue
		}
		if _, ok := text(a); ok {
			a, b = b, a
		}
		if t, ok := text(b); ok && a.Kind() == ast.SelectKind && !a.AsSelect().IsTestOnly() && isIdent(a.AsSelect().Operand(), "self") {
			return property(a.AsSelect().FieldName()), t, operator == operators.Equals
		}
	}
	return "", "", true
}
