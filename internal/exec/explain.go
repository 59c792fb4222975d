package exec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/pattern"
	"github.com/espalier-dev/espalier/internal/plan"
)

// explainer finds out what is wrong with an object that the checker has
// refused, in upstream's words and with upstream's choice of what to say about
// logical keywords: besides that none of the branches fits, the errors of the one with
// the most matches.
type explainer struct {
	d       *jsondoc.Doc
	history *history // nil without ratcheting
	path    path

	errs     []Violation
	failures int // violations found, also those beyond the limits
	bytes    int // in paths and messages of errs
	branches int // violations kept in the branches of logical keywords
	nesting  int // of logical keywords around the value

	enums map[*plan.Assert]enumTexts

	// exact is for defaults, which clusters validate as they are written: 1.0 is
	// no integer. Upstream's mistakes are repeated here, because the cluster
	// decides whether it accepts the schema.
	exact bool
}

// What an explanation holds at most. Paths can be as long as an object is deep,
// and violations as many as it has values.
const (
	maxViolations       = 10_000
	maxViolationBytes   = 16 << 20
	maxBranchViolations = 1_000

	// Every logical keyword copies what its branches have found: a hostile schema
	// nests them by the thousand.
	deepNesting     = 16
	maxDeeplyNested = 100
)

// full reports whether no more violations are kept.
func (e *explainer) full() bool {
	return len(e.errs) >= maxViolations || e.bytes >= maxViolationBytes || e.nesting > deepNesting && len(e.errs) >= maxDeeplyNested
}

// value records the violations of n by v and returns the number of matches. An
// unchanged value has no violations (ratcheting).
func (e *explainer) value(v jsondoc.Value, n *plan.Node, p pairing) int {
	mark := e.mark()
	matches := e.against(v, n, p)
	if e.failures > mark.failures && e.history.unchanged(p) {
		e.reset(mark)
	}
	return matches
}

// unique returns the violations, without those whose message was there before:
// upstream reports none twice.
func (e *explainer) unique() []Violation {
	var list []Violation
	seen := map[string]bool{}
	for _, x := range e.errs {
		if !seen[x.message] {
			seen[x.message] = true
			list = append(list, x)
		}
	}
	return list
}

// whole returns a number if it is an integer.
func (e *explainer) whole(v jsondoc.Value) (int64, bool) {
	if e.exact {
		return e.d.Int64(v)
	}
	return wholeNumber(e.d, v)
}

// mark is a state of an explanation to come back to.
type mark struct{ errs, failures, bytes int }

func (e *explainer) mark() mark { return mark{len(e.errs), e.failures, e.bytes} }

func (e *explainer) reset(m mark) {
	e.errs = e.errs[:m.errs]
	e.failures, e.bytes = m.failures, m.bytes
}

// against compares v with n, in the order of upstream's validators, so that the
// violations have its order. Matches are counted as upstream does: one for each
// validator that applies, one for the type, one for the schema.
func (e *explainer) against(v jsondoc.Value, n *plan.Node, p pairing) int {
	kind := e.d.Kind(v)
	if kind == jsondoc.Null {
		matches := e.typeOfNull(v, n)
		e.enum(v, n)
		return matches
	}
	matches := 3 // the logical keywords, the enum, the schema
	if states(n) {
		matches += 1 + e.typeOf(v, kind, n)
	}
	matches += e.logical(v, n)
	switch kind {
	case jsondoc.String:
		matches++
		e.text(v, n)
		if formatOf(n).Form != 0 {
			matches++
		}
	case jsondoc.Number:
		matches += 2
		e.number(v, n)
	case jsondoc.Array:
		matches += 2 + e.array(v, n, p)
	}
	e.enum(v, n)
	if kind == jsondoc.Object {
		matches += 1 + e.object(v, n, p)
	}
	return matches
}

var noFormat plan.Assert

// formatOf returns the assertion of a format that counts beside the type of n.
func formatOf(n *plan.Node) *plan.Assert {
	for i := range n.Asserts {
		if a := &n.Asserts[i]; a.Op == plan.Format && (a.Form != 0 || a.Num != 0) {
			return a
		}
	}
	return &noFormat
}

// states reports whether n says anything about the type.
func states(n *plan.Node) bool { return types(n) != "" || formatOf(n).Text != "" }

// types returns the types of n as upstream prints them.
func types(n *plan.Node) string {
	if n.Flags&plan.IntOrString != 0 {
		return "integer,string"
	}
	if n.Type == plan.Untyped {
		for i := range n.Asserts {
			if n.Asserts[i].Op == plan.OtherType {
				return n.Asserts[i].Text
			}
		}
	}
	return n.Type.String()
}

func (e *explainer) typeOfNull(v jsondoc.Value, n *plan.Node) int {
	if t := types(n); t == "" || t == "null" || n.Flags&plan.Nullable != 0 {
		return 1
	}
	e.wrongType(v, types(n), "null")
	return 0
}

// typeOf checks the type of v; it returns one match or none.
func (e *explainer) typeOf(v jsondoc.Value, kind jsondoc.Kind, n *plan.Node) int {
	is, form := valueType(e.d, v), ""
	isInt := false
	if kind == jsondoc.Number {
		form = "float64"
		if _, isInt = e.whole(v); isInt {
			is, form = "integer", "int64"
		}
	}
	has := func(t plan.Type) bool {
		if n.Flags&plan.IntOrString != 0 {
			return t == plan.Integer || t == plan.String
		}
		return n.Type == t
	}
	numeric := has(plan.Integer) || has(plan.Number)
	fits := has(plan.TypeOf(is)) ||
		kind == jsondoc.Number && (isInt && has(plan.Number) || !isInt && has(plan.Integer) && nearlyWhole(e.d.Float64(v)))
	textual := kind == jsondoc.String || kind == jsondoc.Array
	f := formatOf(n).Text
	switch {
	case f != "" && !textual && !fits && form != f:
		e.wrongType(v, f, form)
	case f != "" && textual && !numeric && (kind == jsondoc.String || n.Flags&plan.Strict == 0):
		return 1 // upstream asks no more of strings and arrays once there is a format
	case !fits:
		e.wrongType(v, types(n), is)
	default:
		return 1
	}
	return 0
}

func (e *explainer) wrongType(v jsondoc.Value, want, is string) {
	at := e.body()
	e.add(Violation{Type: field.ErrorTypeTypeInvalid, BadValue: is, Keyword: "type"}, at, v,
		fmt.Sprintf("%s in body must be of type %s: %q", at, want, is))
}

func (e *explainer) enum(v jsondoc.Value, n *plan.Node) {
	for i := range n.Asserts {
		a := &n.Asserts[i]
		if a.Op != plan.Enum {
			continue
		}
		c := checker{d: e.d}
		var ok bool
		if e.d.Kind(v) == jsondoc.String {
			ok = c.enumHasText(v, e.d.AppendText(nil, v), a)
		} else {
			ok = e.enumHas(v, a, wayOf(n))
		}
		if ok {
			continue
		}
		if e.full() {
			e.failures++ // without the work of saying it
			continue
		}
		at, list := e.body(), e.listOf(a)
		e.fail(Violation{Type: field.ErrorTypeNotSupported, BadValue: e.d.Any(v), Detail: list.detail, Keyword: "enum"}, at, v,
			at+" in body should be one of "+list.values)
		e.bytes += e.d.End(v) - e.d.Offset(v) // the bad value
	}
}

// enumTexts are the values of an enum, as details of field errors and as the
// messages of the validator list them.
type enumTexts struct{ detail, values string }

// listOf renders an enum, once for all violations of it.
func (e *explainer) listOf(a *plan.Assert) enumTexts {
	if t, ok := e.enums[a]; ok {
		return t
	}
	var values []any
	var names []string
	for _, listed := range a.List {
		x := decoded(listed)
		values = append(values, x)
		if s, ok := x.(string); ok {
			names = append(names, s)
		} else {
			names = append(names, canonicalText(listed))
		}
	}
	t := enumTexts{detail: field.NotSupported(nil, "", names).Detail, values: fmt.Sprint(values)}
	if e.enums == nil {
		e.enums = map[*plan.Assert]enumTexts{}
	}
	e.enums[a] = t
	return t
}

// enumHas is the checker's enumHas without its fixes of upstream's mistakes.
func (e *explainer) enumHas(v jsondoc.Value, a *plan.Assert, w way) bool {
	r := stored
	if e.exact {
		w, r = literal, written
		_, asWritten := e.d.Int64(v)
		_, isWhole := wholeNumber(e.d, v)
		if isWhole && !asWritten && e.d.Kind(v) == jsondoc.Number {
			w = strict // a float, which is not converted to a character
		}
	}
	var buf []byte
	return enumHas(e.d, v, a, w, r, &buf)
}

// canonicalText returns a listed value as upstream encodes it in details.
func canonicalText(listed string) string {
	d, err := jsondoc.Parse([]byte(listed), jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return listed
	}
	defer d.Release()
	return string(d.AppendCanonical(nil, jsondoc.Root))
}

func decoded(raw string) any {
	d, err := jsondoc.Parse([]byte(raw), jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return raw
	}
	defer d.Release()
	return d.Any(jsondoc.Root)
}

// text checks a string. Upstream stops at the first of length and pattern that
// fails, and looks at the format besides.
func (e *explainer) text(v jsondoc.Value, n *plan.Node) {
	if len(n.Asserts) == 0 {
		return
	}
	text := e.d.AppendText(nil, v)
	e.length(v, n, text)
	if a := formatOf(n); !a.Form.Match(text) {
		at := e.body()
		e.add(Violation{Type: field.ErrorTypeTypeInvalid, BadValue: string(text), Keyword: "format"}, at, v,
			fmt.Sprintf("%s in body must be of type %s: %q", at, a.Text, text))
	}
}

func (e *explainer) length(v jsondoc.Value, n *plan.Node, text []byte) {
	for i := range n.Asserts {
		a := &n.Asserts[i]
		limit := int64(a.Num)
		switch a.Op {
		case plan.MaxLength:
			if int64(utf8.RuneCount(text)) > limit {
				at := e.body()
				bad := field.TooLong(nil, "", int(limit))
				e.fail(Violation{Type: bad.Type, BadValue: bad.BadValue, Detail: bad.Detail, Keyword: "maxLength"}, at, v,
					fmt.Sprintf("%s in body should be at most %d chars long", at, limit))
				return
			}
		case plan.MinLength:
			if int64(utf8.RuneCount(text)) < limit {
				at := e.body()
				e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: string(text), Keyword: "minLength"}, at, v,
					fmt.Sprintf("%s in body should be at least %d chars long", at, limit))
				return
			}
		case plan.Pattern:
			if a.Match == nil || !a.Match.Match(text) {
				at := e.body()
				e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: string(text), Keyword: "pattern"}, at, v,
					fmt.Sprintf("%s in body should match '%s'", at, wanted(a)))
				return
			}
		}
	}
}

// wanted returns a pattern as upstream prints it.
func wanted(a *plan.Assert) string {
	if a.Match != nil {
		return a.Text
	}
	_, err := pattern.Compile(a.Text)
	return fmt.Sprintf("%s, but pattern is invalid: %v", a.Text, err)
}

func (e *explainer) array(v jsondoc.Value, n *plan.Node, p pairing) int {
	matches := 0
	if n.Items != nil {
		for i, c := range e.d.Items(v) {
			var item pairing
			if p.ok {
				item = e.history.item(p, c)
			}
			e.path = append(e.path, step{kind: indexStep, index: i})
			matches += e.value(c, n.Items, item)
			e.path = e.path[:len(e.path)-1]
		}
	}
	e.size(v, n, plan.MinItems, plan.MaxItems, "items", "minItems", "maxItems")
	e.uniqueItems(v, n)
	return matches
}

func (e *explainer) uniqueItems(v jsondoc.Value, n *plan.Node) {
	for i := range n.Asserts {
		if n.Asserts[i].Op != plan.UniqueItems {
			continue
		}
		var u uniqueness
		u.duplicates(e.d, v, nil, func(int, jsondoc.Value) bool {
			at := e.body()
			e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: "", Keyword: "uniqueItems"}, at, v, at+" in body shouldn't contain duplicates")
			return false
		})
	}
}

// size checks the number of items or members.
func (e *explainer) size(v jsondoc.Value, n *plan.Node, least, most plan.Op, of, minimum, maximum string) {
	for i := range n.Asserts {
		a := &n.Asserts[i]
		size, limit := int64(e.d.Len(v)), int64(a.Num)
		switch {
		case a.Op == least && size < limit:
			at := e.body()
			e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: size, Keyword: minimum}, at, v,
				fmt.Sprintf("%s in body should have at least %d %s", at, limit, of))
		case a.Op == most && size > limit:
			at := e.body()
			bad := field.TooMany(nil, int(size), int(limit))
			e.fail(Violation{Type: bad.Type, BadValue: bad.BadValue, Detail: bad.Detail, Keyword: maximum}, at, v,
				fmt.Sprintf("%s in body should have at most %d %s", at, limit, of))
		}
	}
}

func (e *explainer) object(v jsondoc.Value, n *plan.Node, p pairing) int {
	e.size(v, n, plan.MinProperties, plan.MaxProperties, "properties", "minProperties", "maxProperties")
	if n.Rare != nil && len(n.Rare.Unions) > 0 && !unionsValid(e.d, v, n) {
		for _, u := range unionErrors(e.d, v, n, e.path) {
			e.fail(u, "", v, u.Error())
		}
	}
	matches := 0
	visit := func(k, was jsondoc.Value, ok bool) bool {
		key := e.d.Key(k)
		child, at := n.Additional, step{kind: keyStep, key: key}
		if rank := n.Props.Lookup(key); rank >= 0 {
			child, at.kind = n.Props.At(rank).Node, fieldStep
		} else if n.Flags&plan.AdditionalFalse != 0 {
			of := e.body()
			e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: string(key), Keyword: "additionalProperties"}, of, k,
				fmt.Sprintf("%s.%s in body is a forbidden property", of, key))
			return true
		}
		if child == nil {
			return true
		}
		pair := pairing{node: child, now: k + 1, was: was, ok: ok}
		if len(e.path) == 0 && (string(key) == "apiVersion" || string(key) == "kind") {
			pair.ok = false // both are converted to one version before they are compared
		}
		e.path = append(e.path, at)
		matches += e.value(k+1, child, pair)
		e.path = e.path[:len(e.path)-1]
		return true
	}
	if p.ok {
		e.history.members(p, visit)
	} else {
		end := e.d.Next(v)
		for k := v + 1; k < end; k = e.d.Next(k + 1) {
			visit(k, 0, false)
		}
	}
	e.required(v, n)
	return matches
}

func (e *explainer) required(v jsondoc.Value, n *plan.Node) {
	for i := range n.Asserts {
		a := &n.Asserts[i]
		if a.Op != plan.Required {
			continue
		}
		have := map[string]bool{}
		for m := range e.d.Members(v) {
			have[string(e.d.Key(m.Key))] = true
		}
		for _, name := range a.List {
			if !have[name] {
				at := e.body() + "." + name
				e.fail(Violation{Type: field.ErrorTypeRequired, BadValue: "", Keyword: "required"}, at, v, at+" in body is required")
			}
		}
	}
}

// add notes a violation whose detail is upstream's message.
func (e *explainer) add(x Violation, at string, v jsondoc.Value, message string) {
	x.Detail = message
	e.fail(x, at, v, message)
}

// fail notes a violation at a path as upstream writes it in messages; "" leaves
// the path that x has. Upstream reports no message twice.
func (e *explainer) fail(x Violation, at string, v jsondoc.Value, message string) {
	e.failures++
	if e.full() {
		return
	}
	if x.Path == "" {
		x.Path = strings.TrimPrefix(at, ".")
		if at == "" || at == "." {
			x.Path = "<nil>"
		}
	}
	if x.At == "" {
		x.At = e.path.field()
	}
	if x.Offset == 0 {
		x.Offset = e.d.Offset(v)
	}
	x.message = message
	e.bytes += len(x.Path) + len(x.At) + len(message)
	e.errs = append(e.errs, x)
}

// body renders the path as the messages do, where keys of maps look like
// fields.
func (e *explainer) body() string {
	var b []byte
	for _, s := range e.path {
		switch {
		case s.kind == indexStep:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(s.index), 10)
			b = append(b, ']')
		default:
			if len(b) > 0 || s.kind == keyStep {
				b = append(b, '.')
			}
			b = append(b, s.key...)
		}
	}
	return string(b)
}
