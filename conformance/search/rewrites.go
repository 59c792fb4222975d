package search

import (
	"strconv"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// valued are the keywords that allOf, anyOf, oneOf and not may have.
var valued = []string{"maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "pattern", "enum", "required", "anyOf", "oneOf", "not"}

// restate says the same, or nearly, in another way.
func restate(e *editor, s *site) bool {
	switch e.IntN(5) {
	case 0:
		return intoAllOf(e, s)
	case 1:
		return outOfAllOf(e, s)
	case 2: // 1 and exclusive 0 are the same for integers only
		for _, k := range []struct {
			bound, exclusive string
			by               int
		}{{"minimum", "exclusiveMinimum", -1}, {"maximum", "exclusiveMaximum", 1}} {
			i, err := strconv.Atoi(s.n.Get(k.bound).Literal())
			if err != nil {
				continue
			}
			if s.n.Get(k.exclusive).Is("true") {
				s.n.Del(k.exclusive)
				s.n.Set(k.bound, tree.Lit(strconv.Itoa(i-k.by)))
			} else {
				s.n.Set(k.exclusive, tree.Lit("true"))
				s.n.Set(k.bound, tree.Lit(strconv.Itoa(i+k.by)))
			}
			return true
		}
	case 3: // a choice of one
		if allOf := s.n.Get("allOf"); isList(allOf) && s.n.Get("anyOf") == nil {
			i, b := e.kid(allOf)
			s.n.Set(e.choose("anyOf", "oneOf"), tree.Arr(b.Clone()))
			if allOf.Cut(i); len(allOf.Kids) == 0 {
				s.n.Del("allOf")
			}
			return true
		}
	case 4:
		for _, k := range []string{"anyOf", "oneOf", "allOf"} {
			if list := s.n.Get(k); isList(list) {
				e.Shuffle(len(list.Kids), func(i, j int) { list.Kids[i], list.Kids[j] = list.Kids[j], list.Kids[i] })
				return true
			}
		}
	}
	return false
}

func intoAllOf(e *editor, s *site) bool {
	branch := tree.Obj()
	for _, k := range valued {
		if v := s.n.Get(k); v != nil && (e.one(2) || len(branch.Kids) == 0) {
			branch.Add(k, v.Clone())
			s.n.Del(k)
		}
	}
	if len(branch.Kids) == 0 {
		return false
	}
	allOf := s.n.Have("allOf", tree.Array)
	allOf.Kids = append(allOf.Kids, branch)
	return true
}

func outOfAllOf(e *editor, s *site) bool {
	allOf := s.n.Get("allOf")
	if !isList(allOf) {
		return false
	}
	i, b := e.kid(allOf)
	for _, k := range valued {
		if v := b.Get(k); v != nil && s.n.Get(k) == nil {
			s.n.Set(k, v.Clone())
			b.Del(k)
		}
	}
	if len(b.Kids) == 0 {
		allOf.Cut(i)
	}
	if len(allOf.Kids) == 0 {
		s.n.Del("allOf")
	}
	return true
}

// editLogical changes, adds or removes branches, or turns one of allOf, anyOf, oneOf and not into another.
func editLogical(e *editor, s *site) bool {
	var found []string
	for _, k := range []string{"anyOf", "oneOf", "allOf", "not"} {
		if s.n.Get(k) != nil {
			found = append(found, k)
		}
	}
	if len(found) == 0 || e.one(5) {
		return addLogical(e, s)
	}
	k := e.choose(found...)
	list := s.n.Get(k)
	if k == "not" {
		if e.one(2) {
			s.n.Del("not")
			return true
		}
		return addLimitTo(e, list, kind(s.n))
	}
	if !isList(list) {
		return false
	}
	i, b := e.kid(list)
	switch e.IntN(5) {
	case 0:
		if list.Cut(i); len(list.Kids) == 0 {
			s.n.Del(k)
		}
	case 1:
		list.Kids = append(list.Kids, b.Clone())
	case 2:
		extra := tree.Obj()
		if !addLimitTo(e, extra, kind(s.n)) {
			return false
		}
		list.Kids = append(list.Kids, extra)
	case 3:
		s.n.Del(k)
		s.n.Set(e.choose("anyOf", "oneOf", "allOf"), list.Clone())
	case 4:
		return addLimitTo(e, b, kind(s.n))
	}
	return true
}

func addLimitTo(e *editor, n *tree.Node, kind string) bool {
	list := limits[kind]
	if len(list) == 0 || !isObject(n) {
		return false
	}
	x := e.node(list...)
	for i, raw := range x.Keys {
		if k := tree.Unquote(raw); k != "format" {
			n.Set(k, x.Kids[i])
		}
	}
	return true
}

func addLogical(e *editor, s *site) bool {
	branch := func() *tree.Node {
		b := tree.Obj()
		if props := s.n.Get("properties"); hasProperties(s.n) && e.one(2) {
			b.Set("required", tree.Arr(tree.Lit(props.Keys[e.IntN(len(props.Keys))])))
			return b
		}
		addLimitTo(e, b, kind(s.n))
		return b
	}
	k := e.choose("anyOf", "oneOf", "allOf", "not")
	if s.n.Get(k) != nil {
		return false
	}
	if k == "not" {
		s.n.Set(k, branch())
		return true
	}
	s.n.Set(k, tree.Arr(branch(), branch()))
	return true
}

// editRule changes, adds or removes a rule.
func editRule(e *editor, s *site) bool {
	if s.inside {
		return false
	}
	rules := s.n.Get("x-kubernetes-validations")
	if !isList(rules) {
		if s.parent == nil || !e.one(3) {
			return false
		}
		text := map[string]string{"string": "self.size() < 8", "integer": "self < 100", "array": "self.size() < 3", "boolean": "self"}[kind(s.n)]
		if text == "" {
			return false
		}
		rule := tree.Obj()
		rule.Add("rule", tree.Str(text))
		s.n.Set("x-kubernetes-validations", tree.Arr(rule))
		return true
	}
	i, rule := e.kid(rules)
	text := rule.Get("rule").Text()
	if text == "" {
		return false
	}
	switch e.IntN(8) {
	case 0:
		if rules.Cut(i); len(rules.Kids) == 0 {
			s.n.Del("x-kubernetes-validations")
		}
		return true
	case 1:
		text = "(" + text + ") || " + e.choose("true", "1 > 2", "self == self")
	case 2:
		text = "(" + text + ") && " + e.choose("true", "1 > 2", "self == self")
	case 3:
		text = "  ( " + text + " ) "
	case 4:
		text = "!(" + text + ")"
	case 5:
		rule.Set("message", tree.Str("in other words"))
		return true
	case 6:
		text = bump(text, 1)
	case 7:
		text = bump(text, -1)
	}
	for _, r := range rules.Kids {
		if r.Get("rule").Text() == text {
			return false
		}
	}
	rule.Set("rule", tree.Str(text))
	return true
}

// bump changes the first digit of a text.
func bump(text string, by int) string {
	for i := range len(text) {
		if d := text[i]; d > '0' && d < '9' {
			return text[:i] + string(rune(int(d)+by)) + text[i+1:]
		}
	}
	return text + " || false"
}
