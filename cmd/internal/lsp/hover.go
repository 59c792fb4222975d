package lsp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

type hoverResult struct {
	Contents *markupContent `json:"contents"`
	Range    Range          `json:"range"`
}

func (s *Server) hover(_ context.Context, v *view) (any, error) {
	v.read(s.engine)
	e, inKey := v.outline.at(v.offset)
	if e.parent == nil || e.item && v.offset > e.valueEnd || !e.item && !inKey && (v.offset < e.valueAt || v.offset > e.valueEnd) {
		return nil, nil
	}
	sub := subjectOf(e)
	n := follow(s.root(&sub), sub.steps)
	if n == nil {
		return nil, nil
	}
	f := n.facts()
	title := "`" + path(sub.steps) + "`"
	if f.typ != "" {
		title += " " + f.typ
	}
	text := title + "\n\n" + f.markdown(s.isRequired(&sub))
	if sub.isCRD() && expressionAt(&sub) {
		text += costText(v, &sub)
	}
	at := v.span(e.keyAt, e.keyEnd)
	if !inKey {
		at = v.span(e.valueAt, e.valueEnd)
	}
	return &hoverResult{Contents: markdown(strings.TrimSpace(text)), Range: at}, nil
}

// isRequired reports whether the field that the last step leads to must be set.
func (s *Server) isRequired(sub *subject) bool {
	last := len(sub.steps) - 1
	if last < 0 || sub.steps[last].item {
		return false
	}
	parent := follow(s.root(sub), sub.steps[:last])
	return parent != nil && slices.Contains(parent.members(), member{sub.steps[last].key, true})
}

// path writes steps as a field path.
func path(steps []*entry) string {
	var b strings.Builder
	for _, e := range steps {
		switch {
		case e.item:
			fmt.Fprintf(&b, "[%d]", e.index)
		case b.Len() > 0:
			b.WriteString("." + e.key)
		default:
			b.WriteString(e.key)
		}
	}
	return b.String()
}

// The bounds of what is shown.
const (
	maxShownValues = 20
	maxShownRules  = 20
)

// markdown shows what is known about a value.
func (f *facts) markdown(required bool) string {
	var b strings.Builder
	if f.description != "" {
		b.WriteString(strings.TrimSpace(f.description) + "\n\n")
	}
	line := func(name, text string) { fmt.Fprintf(&b, "- %s: %s\n", name, text) }
	if required {
		b.WriteString("- required\n")
	}
	if f.value != "" {
		line("default", code(f.value))
	}
	if len(f.enum) > 0 {
		shown := make([]string, 0, len(f.enum))
		for i, v := range f.enum {
			if i == maxShownValues {
				shown = append(shown, fmt.Sprintf("and %d more", len(f.enum)-i))
				break
			}
			shown = append(shown, code(v))
		}
		line("one of", strings.Join(shown, ", "))
	}
	for _, c := range f.constraints {
		name, value, _ := strings.Cut(c, ": ")
		line(name, code(value))
	}
	if len(f.keys) > 0 {
		line("keys", code(strings.Join(f.keys, ", ")))
	}
	for i, r := range f.rules {
		if i == maxShownRules {
			fmt.Fprintf(&b, "- and %d more CEL rules\n", len(f.rules)-i)
			break
		}
		line("CEL rule", strings.TrimSuffix(code(r.rule)+" "+r.message, " "))
	}
	return b.String()
}

// code marks code. Backticks in it would end it.
func code(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// expressionAt reports whether the last step leads to a CEL expression of a schema.
func expressionAt(sub *subject) bool {
	n := len(sub.steps)
	return n > 3 && (sub.steps[n-1].key == "rule" || sub.steps[n-1].key == "messageExpression") &&
		sub.steps[n-2].item && sub.steps[n-3].key == "x-kubernetes-validations"
}

// schemaOf returns the openAPIV3Schema that an expression belongs to, from the last good form of the CRD,
// and the pointers of the node with the rule and of the expression in it.
func schemaOf(v *view, sub *subject) (schema []byte, at, expression string) {
	i := slices.IndexFunc(sub.steps, func(e *entry) bool { return e.key == "openAPIV3Schema" })
	object := v.goodObject(sub)
	if i < 0 || object == nil {
		return nil, "", ""
	}
	doc, err := jsondoc.Parse(object.JSON, jsondoc.Limits{})
	if err != nil {
		return nil, "", ""
	}
	defer doc.Release()
	value := jsondoc.Root
	for _, e := range sub.steps[:i+1] {
		var ok bool
		switch {
		case e.item && doc.Kind(value) == jsondoc.Array:
			value, ok = doc.Index(value, e.index)
		case !e.item && doc.Kind(value) == jsondoc.Object:
			value, ok = doc.Get(value, e.key)
		}
		if !ok {
			return nil, "", ""
		}
	}
	below := sub.steps[i+1:]
	return doc.Raw(value), pointer(below[:len(below)-3]), pointer(below)
}

// costText says what a rule may cost.
func costText(v *view, sub *subject) string {
	schema, _, expression := schemaOf(v, sub)
	if schema == nil {
		return ""
	}
	costs, err := cel.Costs(schema, cel.CheckOptions{})
	if err != nil {
		return ""
	}
	for _, c := range costs {
		if c.Pointer == expression {
			text := fmt.Sprintf("- estimated cost: %d", c.Total)
			if c.Times > 1 {
				text += fmt.Sprintf(" (%d × %d values)", c.Cost, c.Times)
			}
			return text + fmt.Sprintf(", %s of the limit of %d\n", percent(c.Total), cel.MaxRuleCost)
		}
	}
	return ""
}

func percent(cost uint64) string {
	p := float64(cost) / cel.MaxRuleCost * 100
	switch {
	case p < 0.1:
		return "less than 0.1 %"
	case p < 10:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}
