package mutate

import (
	"regexp"
	"strings"

	"k8s.io/apiserver/pkg/cel"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// enrichRules adds one to three rules to a site, about its value or about one of its fields.
func enrichRules(g *gardener, s *site) bool {
	if s.inside {
		return false
	}
	list := s.n.Get("x-kubernetes-validations")
	if list == nil || list.Kind != tree.Array {
		list = tree.Arr()
	}
	for range 1 + g.IntN(3) {
		if rule := g.rule(s); rule != nil && !hasRule(list, rule.Get("rule").Text()) {
			list.Kids = append(list.Kids, rule)
		}
	}
	if len(list.Kids) == 0 {
		return false
	}
	s.n.Set("x-kubernetes-validations", list)
	return true
}

// hasRule tells whether a list has a rule of that text. Two would be a list map with a key twice.
func hasRule(list *tree.Node, text string) bool {
	for _, k := range list.Kids {
		if k.Get("rule").Text() == text {
			return true
		}
	}
	return false
}

func (g *gardener) rule(s *site) *tree.Node {
	switch {
	case g.one(40):
		return g.finish(ruleTemplate{rule: g.choose(broken...)}, "self", "oldSelf")
	case g.one(250):
		return g.finish(ruleTemplate{rule: g.choose(expensive...)}, "self", "oldSelf")
	}
	props := s.n.Get("properties")
	if props != nil && props.Kind == tree.Object && len(props.Kids) > 0 && !g.one(5) {
		i := g.IntN(len(props.Kids))
		name, ok := cel.Escape(tree.Unquote(props.Keys[i]))
		t, typed := g.template(props.Kids[i])
		if ok && typed {
			rule := g.finish(t, "self."+name, "oldSelf."+name)
			guard := "!has(self." + name + ") || "
			if oldWord.MatchString(t.rule) {
				guard += "!has(oldSelf." + name + ") || "
			}
			if !g.one(6) {
				rule.Set("rule", tree.Str(guard+"("+rule.Get("rule").Text()+")"))
			}
			if g.one(3) {
				rule.Set("fieldPath", tree.Str(g.choose("."+tree.Unquote(props.Keys[i]), "['"+tree.Unquote(props.Keys[i])+"']")))
			}
			return rule
		}
	}
	if s.parent == nil && g.one(2) {
		list := ruleTemplates["resource"]
		return g.finish(list[g.IntN(len(list))], "self", "oldSelf")
	}
	t, typed := g.template(s.n)
	if !typed {
		return nil
	}
	return g.finish(t, "self", "oldSelf")
}

// template picks a template for the type of a schema.
func (g *gardener) template(n *tree.Node) (ruleTemplate, bool) {
	kind := ruleKind(n)
	list := ruleTemplates[kind]
	if kind == "array" && n.Get("items").Get("type").Text() == "string" && n.Get("items").Get("format") == nil && g.one(2) {
		list = ruleTemplates["strings"]
	}
	if len(list) == 0 {
		return ruleTemplate{}, false
	}
	return list[g.IntN(len(list))], true
}

func ruleKind(n *tree.Node) string {
	switch kind := n.Get("type").Text(); kind {
	case "string":
		switch n.Get("format").Text() {
		case "byte":
			return "bytes"
		case "date", "date-time":
			return "datetime"
		case "duration":
			return "duration"
		}
		return kind
	case "object":
		if more := n.Get("additionalProperties"); more != nil && more.Kind == tree.Object {
			return "map"
		}
		return kind
	case "":
		if n.Get("x-kubernetes-int-or-string").Is("true") {
			return "int-or-string"
		}
		return ""
	default:
		return kind
	}
}

var (
	selfWord = regexp.MustCompile(`\bS\b`)
	oldWord  = regexp.MustCompile(`\bO\b`)
)

func fill(text, self, old string) string {
	return oldWord.ReplaceAllString(selfWord.ReplaceAllString(text, self), old)
}

// finish fills in a template and the other fields of a rule.
func (g *gardener) finish(t ruleTemplate, self, old string) *tree.Node {
	n := tree.Obj()
	optional := oldWord.MatchString(t.rule) && g.one(4)
	if optional {
		old = strings.Replace(old, "oldSelf", "oldSelf.value()", 1)
	}
	rule := fill(t.rule, self, old)
	switch {
	case optional && g.one(4):
	case optional:
		rule = "!oldSelf.hasValue() || (" + rule + ")"
	}
	n.Add("rule", tree.Str(rule))
	if expr, ok := strings.CutPrefix(t.message, "="); ok {
		if expr = fill(expr, self, old); expr != "" {
			n.Add("messageExpression", tree.Str(expr))
		}
		if g.one(3) {
			n.Add("message", tree.Str("the fallback"))
		}
	} else if t.message != "" {
		n.Add("message", tree.Str(t.message))
	}
	if optional || g.one(60) {
		n.Add("optionalOldSelf", g.node("true", "true", "true", "false"))
	}
	if g.one(4) {
		n.Add("reason", tree.Str(g.choose("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")))
	}
	return n
}
