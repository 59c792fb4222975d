package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// A Rule is an entry of x-kubernetes-validations.
type Rule struct {
	Text, Message, MessageExpression, FieldPath, Reason string
	OptionalOldSelf                                     string // true, false or nothing
	Old                                                 bool   // it is about oldSelf
	Uses                                                []Use

	Type string // of self
	Site string // one of Sites
	At   string // field path of the rule in the schema
	Path string // of the schema, as the reference's Sites writes it
}

// Kinds of rules, for tables.
const (
	Plain       = "self"
	Transition  = "oldSelf"
	Optional    = "optionalOldSelf"
	NotOptional = "optionalOldSelf false"
)

// Kind tells what a rule sees of the old object.
func (r *Rule) Kind() string {
	switch {
	case !r.Old:
		return Plain
	case r.OptionalOldSelf == "true":
		return Optional
	case r.OptionalOldSelf == "false":
		return NotOptional
	}
	return Transition
}

// Sites are where rules are.
var Sites = []string{atRoot, atProperty, inAtomic, inSet, inMapList, inValues}

// Correlated reports whether rules of a site can see oldSelf.
func Correlated(site string) bool { return site != inAtomic && site != inSet }

// Tag is the text that the reference names the rule by when it fails.
func (r *Rule) Tag() string {
	if r.Message != "" {
		return r.Message
	}
	return strings.TrimSpace(r.Text)
}

// Concerns reports whether an error of the reference about the schema is about this rule.
func (r *Rule) Concerns(err string) bool { return strings.HasPrefix(err, oracle.Path+"."+r.At+".") }

// JSON is the rule as a document.
func (r *Rule) JSON() *tree.Node {
	n := tree.Obj()
	n.Add("rule", tree.Str(r.Text))
	add := func(name, text string) {
		if text != "" {
			n.Add(name, tree.Str(text))
		}
	}
	add("message", r.Message)
	add("messageExpression", r.MessageExpression)
	add("fieldPath", r.FieldPath)
	add("reason", r.Reason)
	if r.OptionalOldSelf != "" {
		n.Add("optionalOldSelf", tree.Lit(r.OptionalOldSelf))
	}
	return n
}

// rule makes a rule for a shape. number makes its message unlike those of others; featured is an overload that it uses.
func (g *generator) rule(s *shape, number int, featured *signature) *Rule {
	r := &Rule{Type: s.describe(), Site: s.site, At: join(s.at, fmt.Sprintf("x-kubernetes-validations[%d]", len(s.rules))), Path: s.path}
	g.scope, g.uses, g.loops, g.fine = []variable{{"self", s.cel}}, nil, 0, false
	old := s.cel
	if g.one(3) && (Correlated(s.site) || g.one(6)) {
		r.Old = true
		switch g.IntN(5) {
		case 0, 1:
			r.OptionalOldSelf = "true"
			old = types.NewOptionalType(old)
		case 2:
			r.OptionalOldSelf = "false"
		}
		g.scope = append(g.scope, variable{"oldSelf", old})
	} else if g.one(200) {
		r.OptionalOldSelf = g.of("true", "false")
	}
	r.Text = g.feature(featured, 1+g.IntN(4))
	if r.Old && !strings.Contains(r.Text, "oldSelf") {
		r.Text = g.mention(r.Text, old)
	}
	r.Uses = g.uses
	if g.one(3) {
		r.Message = fmt.Sprintf("rule %d of %s", number, s.kind)
	}
	if g.one(3) {
		g.message(r, featured)
	}
	if g.one(5) {
		r.Reason = g.of("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
	}
	if g.one(3) {
		r.FieldPath = g.fieldPath(s)
	}
	return r
}

// mention makes a rule about oldSelf.
func (g *generator) mention(text string, old *types.Type) string {
	more := g.of("self == oldSelf", "oldSelf != self", "[oldSelf].exists(o, o == self)", "type(oldSelf) == type(self)")
	if isOptional(old) {
		more = g.of("oldSelf.hasValue()", "oldSelf.orValue(self) == self", "oldSelf == optional.of(self)", "oldSelf.optMap(o, o == self).orValue(true)")
	}
	return "(" + text + ")" + g.of(" || ", " && ", " != ") + "(" + more + ")"
}

// message makes the messageExpression.
func (g *generator) message(r *Rule, featured *signature) {
	if featured == nil {
		all := library()
		featured = &all[g.IntN(len(all))]
	}
	before := g.uses
	g.uses, g.loops, g.fine = nil, 0, g.one(2)
	switch g.IntN(7) {
	case 0, 1:
		r.MessageExpression = g.expr(types.StringType, 1+g.IntN(3))
	case 2, 3:
		r.MessageExpression = "(" + g.asserted(featured, 1) + ") ? 'yes' : " + g.expr(types.StringType, 1)
	case 4:
		r.MessageExpression = "string(" + g.expr(plainTypes[g.IntN(10)], 2) + ")"
	case 5:
		made, ok := g.madeTest(2)
		if !ok {
			made = "true"
		}
		r.MessageExpression = made + " ? 'yes' : " + g.expr(types.StringType, 1)
	default:
		r.MessageExpression = g.of("' '", "'a\\nb'", "'x' + self", "1", "'long '.replace('o', '"+strings.Repeat("o", 300)+"')", "string(self)")
	}
	for i := range g.uses {
		g.uses[i].Message = true
	}
	r.Uses = append(r.Uses, g.uses...)
	g.uses = before
}

// fieldPath names a field below a shape, or something that is none.
func (g *generator) fieldPath(s *shape) string {
	if g.one(200) {
		return g.of(".nowhere", "a", ".a[0]", "['a']", "..a")
	}
	if len(s.fields) == 0 {
		return ""
	}
	f := s.fields[g.IntN(len(s.fields))]
	path := "." + f.name
	if !plainName(f.name) || g.one(4) {
		path = "['" + f.name + "']"
	}
	if len(f.shape.fields) > 0 && g.one(2) {
		return path + g.fieldPath(f.shape)
	}
	return path
}

func plainName(s string) bool {
	return !strings.ContainsAny(s, ".-/") && s != "in" && s != "true" && s != "namespace"
}

// feature makes a bool that uses an overload, directly or in a comprehension.
func (g *generator) feature(s *signature, depth int) string {
	if s == nil || g.one(3) {
		return g.expr(types.BoolType, depth)
	}
	if g.one(3) {
		if text, ok := g.looped(s, depth); ok {
			return text
		}
	}
	return g.asserted(s, depth)
}

func (g *generator) looped(s *signature, depth int) (string, bool) {
	from, ok := g.source(depth, anything)
	if !ok {
		return "", false
	}
	x, name := g.name(), g.of("all", "exists", "exists_one")
	g.use("macro " + name)
	var text string
	g.with([]variable{{x, from.single()}}, true, func() { text = g.asserted(s, depth) })
	return from.text + "." + name + "(" + x + ", " + text + ")", true
}

// asserted makes a bool from a call of an overload.
func (g *generator) asserted(s *signature, depth int) string {
	b := bindings{}
	text := g.apply(s, b, depth)
	t := b.apply(s.result, g.free)
	if t == types.BoolType {
		return text
	}
	switch g.IntN(5) {
	case 0:
		return "(" + text + " != " + g.expr(t, depth-2) + ")"
	case 1:
		return "(" + text + " in [" + g.leaf(t) + ", " + g.leaf(t) + "])"
	case 2:
		switch t {
		case types.IntType, types.UintType, types.DoubleType, types.StringType, types.BytesType, types.TimestampType, types.DurationType:
			return "(" + text + g.of(" < ", " > ", " <= ", " >= ") + g.leaf(t) + ")"
		}
	}
	return "(" + text + " == " + g.leaf(t) + ")"
}
