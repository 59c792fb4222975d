package cel

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// inspection looks at all rules of a schema as written, each with the node that
// it applies to.
type inspection struct {
	langs [2]*language // of new expressions, and of known ones
	known Expressions
	views *resources
	sizes *sizes
	bad   map[string]bool // pointers to the schemas that are wrong themselves or below
	visit func(*inspected)

	field   []byte // the path of the schema being visited, as the API server writes it
	pointer []byte
}

// within is what surrounds a schema.
type within struct {
	schema   *syntax.Schema
	node     *plan.Node
	declared *plan.Node // what rules see; nil if problem is set or nothing was asked for
	resource bool
	rules    bool   // the schema or one around it has rules
	problem  string // why rules cannot see it
	times    uint64 // how many values of the schema an object can have, if bounded
	bounded  bool
	anchor   string // path of the list that keeps old values from being found; empty if they are
	loops    *loop
}

// loop is a list or map around a schema.
type loop struct {
	parent  *loop
	schema  *syntax.Schema
	field   string
	pointer string
}

// inspected is one rule.
type inspected struct {
	*within
	index   int
	rule    *syntax.Rule
	field   string // of the schema
	pointer string

	problem *problem
	test    *expression
	old     bool // looks at the old value
	cost    uint64
	times   uint64 // evaluations for one object

	messageProblem *problem
	message        *expression
	messageCost    uint64
	scope          *scope
	messageScope   *scope
}

// inspect calls visit for every rule of a schema that the API server compiles:
// if something else is wrong with a schema, its rules are left alone. If it is
// defaults that violate rules, it returns that. At the end it calls done, unless that is
// nil: what visit was given is good until then.
func inspect(schema []byte, o CheckOptions, visit func(*inspected), done func()) ([]finding.Finding, error) {
	s, release, err := bridge.Read(schema, jsondoc.Limits(o.Limits))
	if err != nil {
		return nil, err
	}
	defer release()
	var at *field.Path
	if o.Path != "" {
		at = field.NewPath(o.Path)
	}
	result := compile.Validate(s, compile.CheckOptions{Path: at})
	return examine(s, &result, o, visit, done)
}

// examine is inspect for a schema that has been parsed and validated.
func examine(s *syntax.Schema, result *compile.Result, o CheckOptions, visit func(*inspected), done func()) ([]finding.Finding, error) {
	langs, err := o.languages()
	if err != nil {
		return nil, err
	}
	n, err := compile.Lower(s, compile.LowerOptions{ValidationOnly: !result.Sound})
	if err != nil {
		return nil, nil
	}
	defer plan.Release(n)
	found, err := checkDefaults(n, result.Defaults)
	if err != nil || len(found) > 0 || !result.Sound {
		return found, err
	}
	views := new(resources)
	i := &inspection{
		langs: langs, known: o.Stored, views: views, sizes: newSizes(views), bad: misshapen(result.Findings), visit: visit, field: []byte(o.Path),
	}
	top := &within{schema: s, node: n, declared: n, resource: true, rules: len(s.Validations) > 0, times: 1, bounded: true}
	if !exposed(n) {
		top.problem = unconvertible
	}
	i.schema(top)
	if done != nil {
		done()
	}
	return nil, nil
}

// misshapen returns the pointers to the schemas that something is wrong with,
// themselves or below.
func misshapen(found []finding.Finding) map[string]bool {
	bad := map[string]bool{}
	for i := range found {
		f := &found[i]
		place := misplaced[f.Check]
		if f.Severity != finding.Error || place == ofNone {
			continue
		}
		for p := owner(f.Pointer, place); !bad[p]; p = p[:max(strings.LastIndexByte(p, '/'), 0)] {
			bad[p] = true
		}
	}
	return bad
}

// whose says which schema the API server holds a finding against.
type whose uint8

const (
	itsOwn whose = iota // the schema that the pointer leads to or into
	ofList              // the list whose items the pointer leads into
	ofKeys              // the list whose items' key the pointer leads into
	ofNone              // none: such errors do not concern rules
)

// misplaced are the checks whose errors count for another schema than the one
// that they point to.
var misplaced = map[finding.ID]whose{
	"list-set-atomic": ofList, "list-map-items-object": ofList, "list-items-nullable": ofList,
	"list-map-key-scalar": ofKeys, "list-map-key-optional": ofKeys, "list-map-key-nullable": ofKeys,
	"root-nullable": ofNone, "status-root-type": ofNone, "status-root-keyword": ofNone,
}

// owner cuts a pointer at the list that a finding is about: one schema above
// that of its items, two above that of a key.
func owner(pointer string, w whose) string {
	up := map[whose]int{ofList: 1, ofKeys: 2}[w]
	if up == 0 {
		return pointer
	}
	ends := schemasOn(pointer)
	return pointer[:ends[max(len(ends)-1-up, 0)]]
}

// schemasOn returns where in a pointer those of the schemas on the way end. A
// property may be called like a keyword, so it has to be read from the left.
func schemasOn(pointer string) []int {
	ends := []int{0}
	at := 0
	token := func() string {
		rest := pointer[at+1:]
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			rest = rest[:i]
		}
		at += 1 + len(rest)
		return rest
	}
	for at < len(pointer) {
		switch token() {
		case "items", "additionalProperties", "not":
		case "properties", "allOf", "anyOf", "oneOf":
			if at == len(pointer) {
				return ends
			}
			token()
		default:
			return ends // something within the schema
		}
		ends = append(ends, at)
	}
	return ends
}

// schema visits a schema's children, then its own rules.
func (i *inspection) schema(w *within) {
	if a := w.schema.AdditionalProperties; a != nil && a.Schema != nil {
		i.child(w, a.Schema, w.node.Additional, "additionalProperties", "", true)
	}
	for _, p := range w.schema.Properties {
		i.child(w, p.Schema, w.node.Property(p.Name), "properties", p.Name, w.schema.AdditionalProperties != nil)
	}
	if items := w.schema.ItemSchema(); items != nil {
		i.child(w, items, w.node.Items, "items", "", true)
	}
	if len(w.schema.Validations) > 0 && !i.bad[string(i.pointer)] {
		i.rules(w)
	}
}

// child visits a child of w. many says that w is a list or map of it.
func (i *inspection) child(w *within, s *syntax.Schema, n *plan.Node, keyword, name string, many bool) {
	if n == nil {
		return
	}
	c := &within{
		schema: s, node: n, resource: s.EmbeddedResource, rules: w.rules || len(s.Validations) > 0,
		times: 0, bounded: false, anchor: w.anchor, loops: w.loops,
	}
	if most, ok := occurrences(w.schema); ok && w.bounded {
		c.times, c.bounded = multiply(w.times, most), true
	}
	if keyword == "items" && c.anchor == "" && (w.schema.ListType == nil || *w.schema.ListType != "map") {
		c.anchor = string(i.field)
		if c.anchor == "" {
			c.anchor = "<nil>"
		}
	}
	if many {
		c.loops = &loop{w.loops, w.schema, string(i.field), string(i.pointer)}
	}
	if c.rules {
		i.declare(w, c, keyword, name)
	}
	field, pointer := len(i.field), len(i.pointer)
	if field > 0 {
		i.field = append(i.field, '.')
	}
	i.field = append(i.field, keyword...)
	i.pointer = syntax.AppendToken(i.pointer, keyword)
	if keyword == "properties" {
		i.field = append(append(append(i.field, '['), name...), ']')
		i.pointer = syntax.AppendToken(i.pointer, name)
	}
	i.schema(c)
	i.field, i.pointer = i.field[:field], i.pointer[:pointer]
}

// declare finds out what rules see of c: what the rules around it see there, if
// there are such, or what the schema says.
func (i *inspection) declare(parent, c *within, keyword, name string) {
	if parent.rules {
		if parent.problem != "" {
			c.problem = parent.problem
			return
		}
		seen := i.sizes.seen(parent.declared, parent.resource)
		switch keyword {
		case "properties":
			if escaped := escape(name); escaped != "" {
				c.declared = fieldCalled(seen, escaped)
			}
		default:
			if c.declared = elements(seen); c.declared == nil {
				c.problem = undeclared
				return
			}
		}
		if c.declared != nil {
			return
		}
	}
	if !exposed(c.node) {
		c.problem = unconvertible
		return
	}
	c.declared = c.node
}

const (
	unconvertible = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
	undeclared    = "failed to convert to declType for CEL validation rules"
)

// occurrences returns how many values of each of its children a value has at
// most.
func occurrences(s *syntax.Schema) (uint64, bool) {
	var most *int64
	switch {
	case s.Type == "array":
		most = s.MaxItems
	case s.Type == "object" && s.AdditionalProperties != nil:
		most = s.MaxProperties
	default:
		return 1, true
	}
	if most == nil {
		return 0, false
	}
	return uint64(max(*most, 0)), true
}

func multiply(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// rules compiles the rules of w.
func (i *inspection) rules(w *within) {
	field, pointer := string(i.field), string(i.pointer)
	if w.problem != "" {
		i.visit(&inspected{within: w, field: field, pointer: pointer, problem: &problem{detail: w.problem}, index: -1})
		return
	}
	var scopes [2]*scope
	scopeOf := func(known bool) *scope {
		which := 0
		if known {
			which = 1
		}
		if scopes[which] == nil {
			scopes[which] = newScope(i.langs[which], w.declared, w.resource, i.sizes)
		}
		return scopes[which]
	}
	for n := range w.schema.Validations {
		r := &inspected{within: w, index: n, rule: &w.schema.Validations[n], field: field, pointer: pointer}
		r.scope = scopeOf(i.known.Rules[r.rule.Rule])
		r.messageScope = scopeOf(i.known.Messages[r.rule.MessageExpression])
		if strings.TrimSpace(r.rule.Rule) != "" {
			i.compile(r)
		}
		i.visit(r)
	}
}

func (i *inspection) compile(r *inspected) {
	rule := &plan.Rule{Rule: r.rule.Rule, MessageExpression: r.rule.MessageExpression}
	if r.rule.OptionalOldSelf != nil && *r.rule.OptionalOldSelf {
		rule.OptionalOldSelf = 2
	}
	if r.test, r.problem = r.scope.parseRule(rule); r.problem != nil {
		return
	}
	r.old = r.test.usesOldSelf()
	if _, err := r.test.fast(); err != nil {
		r.problem = &problem{detail: "program instantiation failed: " + err.Error()}
		return
	}
	var err error
	if r.cost, err = r.test.cost(r.scope, nil); err != nil {
		r.problem = &problem{detail: "cost estimation failed: " + err.Error()}
		return
	}
	if r.times = r.within.times; !r.bounded {
		r.times = maxCardinality(i.sizes.min(r.declared, r.resource))
	}
	if rule.MessageExpression == "" {
		return
	}
	if r.message, r.messageProblem = r.messageScope.parseMessage(rule); r.messageProblem != nil {
		return
	}
	if _, err := r.message.fast(); err != nil {
		r.messageProblem = &problem{detail: "messageExpression instantiation failed: " + err.Error()}
		return
	}
	if r.messageCost, err = r.message.cost(r.messageScope, nil); err != nil {
		r.messageProblem = &problem{detail: "cost estimation failed for messageExpression: " + err.Error()}
	}
}

// total is what the API server holds against its limit for one rule.
func (r *inspected) total() uint64 { return multiply(r.cost, r.times) }

// path returns the field path and the pointer of a part of the rule.
func (r *inspected) path(part string) (field, pointer string) {
	b := []byte(r.field)
	if len(b) > 0 {
		b = append(b, '.')
	}
	b = append(b, "x-kubernetes-validations"...)
	p := r.pointer + "/x-kubernetes-validations"
	if r.index >= 0 {
		n := strconv.Itoa(r.index)
		b = append(append(append(append(b, '['), n...), "]."...), part...)
		p += "/" + n + "/" + part
	}
	return string(b), p
}
