package cel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// CheckOptions say in which surroundings the rules of a schema are checked.
type CheckOptions struct {
	// Path is the field path of the schema, put before the paths of findings:
	// spec.versions[0].schema.openAPIV3Schema, say.
	Path string
	// CompatibilityVersion is the Kubernetes version, such as "1.36", whose
	// functions rules may use. Empty means the API server's own choice, the
	// version before its own.
	CompatibilityVersion string
	// Stored are the expressions that the CRD had before it was changed.
	// They may use what any version knows.
	Stored Expressions
	// Unlimited lifts the limit on what one expression may cost, as for schemas
	// that a change of the CRD leaves as they were. The limit for all of
	// them stays.
	Unlimited bool
	Limits    espalier.Limits
}

// Expressions are the texts of expressions.
type Expressions struct {
	Rules    map[string]bool
	Messages map[string]bool
}

// The identifiers of findings.
const (
	// RuleExpression: a rule is an expression that compiles, of type bool.
	RuleExpression finding.ID = "rule-expression"
	// RuleMessageExpression: a messageExpression compiles and is a string.
	RuleMessageExpression finding.ID = "rule-message-expression"
	// RuleType: rules apply to values whose type is known.
	RuleType finding.ID = "rule-type"
	// RuleCost: an expression costs no more than the limit for one.
	RuleCost finding.ID = "rule-cost"
	// RuleTotalCost: the rules of a schema cost no more than the limit for all.
	RuleTotalCost finding.ID = "rule-total-cost"
	// RuleOldSelf: the old value is there only where it can be found.
	RuleOldSelf finding.ID = "rule-old-self"
	// RuleOptionalOldSelf: optionalOldSelf is for rules with oldSelf.
	RuleOptionalOldSelf finding.ID = "rule-optional-old-self"
	// RuleDefault: defaults keep the rules for them.
	RuleDefault finding.ID = "rule-default"
)

// Check reports what is wrong with the rules of schema, the JSON of an
// openAPIV3Schema, as the API server does when a CRD is created: expressions
// that do not compile, that look at old values which cannot be found, and that
// may cost too much; or else the rules that defaults violate. What
// espalier.Check finds, it does not report. Rules of schemas with such errors
// are left alone, as the API server leaves them.
//
// A finding about an expression has the offset of the character in question.
// The name that the API server gives the type of self changes with each try; in
// the texts here it is selfType.
func Check(schema []byte, o CheckOptions) ([]finding.Finding, error) {
	c := check{schema: schema, path: o.Path, unlimited: o.Unlimited}
	return c.finish(inspect(schema, o, c.rule, nil))
}

// checkParsed is [Check] for a schema in a larger document: s, as it was parsed,
// and what is known of it. Pointers start at the schema, offsets at the document.
func checkParsed(document []byte, s *syntax.Schema, known *compile.Result, o CheckOptions) ([]finding.Finding, error) {
	c := check{schema: document, path: o.Path, unlimited: o.Unlimited}
	return c.finish(examine(s, known, o, c.rule, nil))
}

func init() {
	bridge.CheckRules = func(document []byte, s *syntax.Schema, known *compile.Result, options any) ([]finding.Finding, error) {
		return checkParsed(document, s, known, options.(CheckOptions))
	}
}

// languages returns the language of new expressions and that of stored ones, if there are any.
func (o *CheckOptions) languages() (list [2]*language, err error) {
	if list[0], err = newRulesLanguage(o.CompatibilityVersion); err != nil {
		return list, err
	}
	if len(o.Stored.Rules)+len(o.Stored.Messages) > 0 {
		list[1], err = storedLanguage()
	}
	return list, err
}

// finish adds up costs, unless it is defaults that are wrong.
func (c *check) finish(defaults []finding.Finding, err error) ([]finding.Finding, error) {
	if err != nil || len(defaults) > 0 {
		return defaults, err
	}
	c.total()
	return c.found, nil
}

type check struct {
	schema    []byte
	path      string
	unlimited bool
	found     []finding.Finding

	sum       uint64
	expensive []expensive
}

// expensive is an expression that takes a good part of what a schema may cost.
type expensive struct {
	finding finding.Finding
	cost    uint64
}

// mostExpensive is how many of them the API server names.
const mostExpensive = 4

// badRule is the bad value of findings, in the form that the API server shows.
type badRule struct {
	Rule              string
	Message           string
	MessageExpression string
	Reason            *string
	FieldPath         string
	OptionalOldSelf   *bool
}

func (c *check) rule(r *inspected) {
	if r.index < 0 {
		path, pointer := r.path("")
		c.found = append(c.found, finding.Finding{
			Check: RuleType, Type: field.ErrorTypeInternal, Path: path, Detail: r.problem.detail,
			Pointer: pointer, Offset: r.schema.At("x-kubernetes-validations"),
		})
		return
	}
	c.cost(r, "rule", "estimated rule cost", r.total())
	if r.problem != nil {
		c.expression(r, RuleExpression, "rule", r.rule.Rule, r.problem)
	}
	switch {
	case r.messageProblem != nil:
		c.expression(r, RuleMessageExpression, "messageExpression", r.rule.MessageExpression, r.messageProblem)
	case r.message != nil:
		c.cost(r, "messageExpression", "estimated messageExpression cost", r.messageCost)
	}
	switch {
	case r.old && r.anchor != "":
		c.add(r, "rule", finding.Finding{
			Check: RuleOldSelf, Type: field.ErrorTypeInvalid, BadValue: r.rule.Rule,
			Detail: "oldSelf cannot be used on the uncorrelatable portion of the schema within " + r.anchor,
		})
	case !r.old && r.rule.OptionalOldSelf != nil:
		c.add(r, "optionalOldSelf", finding.Finding{
			Check: RuleOptionalOldSelf, Type: field.ErrorTypeInvalid, BadValue: *r.rule.OptionalOldSelf,
			Detail: "may not be set if oldSelf is not used in rule",
		})
	}
}

// add completes a finding about a part of a rule.
func (c *check) add(r *inspected, part string, f finding.Finding) {
	f.Path, f.Pointer = r.path(part)
	if f.Offset == 0 {
		f.Offset = r.rule.At(part)
	}
	c.found = append(c.found, f)
}

// expression reports an expression that does not compile.
func (c *check) expression(r *inspected, id finding.ID, part, text string, p *problem) {
	bad := badRule{
		Rule: r.rule.Rule, Message: r.rule.Message, MessageExpression: r.rule.MessageExpression,
		Reason: r.rule.Reason, FieldPath: r.rule.FieldPath, OptionalOldSelf: r.rule.OptionalOldSelf,
	}
	offset := r.rule.At(part)
	if p.line > 0 {
		offset = offsetIn(c.schema, offset, characters(text, p.line, p.column))
	}
	c.add(r, part, finding.Finding{Check: id, Type: field.ErrorTypeInvalid, BadValue: bad, Detail: p.detail, Summary: p.first, Offset: offset})
}

// cost notes what an expression may cost and reports it if that is too much.
func (c *check) cost(r *inspected, part, name string, cost uint64) {
	if cost > MaxRuleCost && !c.unlimited {
		c.add(r, part, finding.Finding{Check: RuleCost, Type: field.ErrorTypeForbidden, BadValue: "", Detail: costDetail(name, cost, MaxRuleCost)})
	}
	if c.sum > math.MaxUint64-cost {
		c.sum = math.MaxUint64
	} else {
		c.sum += cost
	}
	if cost < MaxSchemaCost/100 {
		return
	}
	f := finding.Finding{
		Check: RuleTotalCost, Type: field.ErrorTypeForbidden, BadValue: "", Offset: r.rule.At(part),
		Detail: "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
	}
	f.Path, f.Pointer = r.path(part)
	c.expensive = append(c.expensive, expensive{f, cost})
	slices.SortStableFunc(c.expensive, func(a, b expensive) int { return cmp.Compare(b.cost, a.cost) })
	c.expensive = c.expensive[:min(len(c.expensive), mostExpensive)]
}

// total reports that all rules together may cost too much.
func (c *check) total() {
	if c.sum <= MaxSchemaCost {
		return
	}
	for _, e := range c.expensive {
		c.found = append(c.found, e.finding)
	}
	path := c.path
	if path == "" {
		path = "<nil>"
	}
	c.found = append(c.found, finding.Finding{
		Check: RuleTotalCost, Type: field.ErrorTypeForbidden, Path: path, BadValue: "",
		Detail: costDetail("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", c.sum, MaxSchemaCost),
	})
}

func costDetail(name string, cost, limit uint64) string {
	factor := float64(cost) / float64(limit)
	text := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		text = "more than 100x"
	case factor < 1.5:
		text = fmt.Sprintf("%fx", factor)
	}
	return name + " exceeds budget by factor of " + text +
		" (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}

// characters returns how many characters of text are before a position.
func characters(text string, line, column int) int {
	n := 0
	for _, r := range text {
		if line <= 1 {
			break
		}
		if r == '\n' {
			line--
		}
		n++
	}
	return n + column
}

// offsetIn returns the offset of the n-th character of the JSON string that
// begins at an offset of a document.
func offsetIn(doc []byte, at, n int) int {
	for i := at + 1; i < len(doc) && doc[i] != '"'; {
		if n == 0 {
			return i
		}
		n--
		i += width(doc[i:])
	}
	return at
}

// width returns the number of bytes that the first character of a JSON string is
// written in.
func width(b []byte) int {
	if b[0] != '\\' {
		_, n := utf8.DecodeRune(b)
		return n
	}
	if len(b) < 6 || b[1] != 'u' {
		return 2
	}
	if high := hexRune(b); utf16.IsSurrogate(high) && len(b) >= 12 && utf16.DecodeRune(high, hexRune(b[6:])) != utf8.RuneError {
		return 12
	}
	return 6
}

// hexRune reads an escape such as \u00e9, 0 if there is none.
func hexRune(b []byte) rune {
	if b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	r, _ := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(r)
}
