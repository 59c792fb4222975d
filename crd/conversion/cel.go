package conversion

import (
	"fmt"
	"math"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-dev/espalier/crd/cel/celsize"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

const (
	maxExpression = 4 << 10
	// maxCost bounds one evaluation, in the units of CEL rules of schemas.
	maxCost = 1_000_000
)

var language = sync.OnceValues(func() (*cel.Env, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv()
	return base.Extend(cel.Variable("self", cel.DynType), cel.CustomTypeAdapter(ordering{base.CELTypeAdapter()}))
})

// calculation evaluates an expression for each field. Expressions see nothing but the fields of their group: what
// comes back is then calculated from what was saved, and from nothing else.
type calculation struct {
	programs []cel.Program
	inputs   [][]string // names from the context to each input; empty: the context itself
	outputs  []*field
}

func (p *pairing) cel(r *celRule) error {
	a, err := p.claimAll(0, r.From)
	if err != nil {
		return err
	}
	b, err := p.claimAll(1, r.To)
	if err != nil {
		return err
	}
	if len(a) == 0 || len(b) == 0 {
		return fmt.Errorf("cel must have from and to")
	}
	if len(r.Value) != len(b) {
		return fmt.Errorf("cel needs an expression in value for each path in to: there are %d and %d", len(r.Value), len(b))
	}
	if len(r.Back) != 0 && len(r.Back) != len(a) {
		return fmt.Errorf("cel needs an expression in back for each path in from, or none: there are %d and %d", len(r.Back), len(a))
	}
	g := &group{fields: [2][]*field{a, b}}
	if g.to[1], err = newCalculation(r.Value, a, b); err != nil {
		return err
	}
	g.to[0] = nothing{}
	if len(r.Back) > 0 {
		if g.to[0], err = newCalculation(r.Back, b, a); err != nil {
			return err
		}
	}
	p.add(g)
	return nil
}

func newCalculation(expressions []string, from, to []*field) (transform, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	c := calculation{outputs: to}
	for _, f := range from {
		var names []string
		for x := f; x != f.context(); x = x.parent {
			names = append([]string{x.name}, names...)
		}
		if f.in != "" {
			names = []string{"metadata", f.in, f.name}
		}
		c.inputs = append(c.inputs, names)
	}
	for _, text := range expressions {
		if len(text) > maxExpression {
			return nil, fmt.Errorf("a CEL expression has %d bytes, more than the limit of %d", len(text), maxExpression)
		}
		parsed, issues := env.Parse(text)
		if issues.Err() != nil {
			return nil, fmt.Errorf("CEL expression %q: %w", text, issues.Err())
		}
		if new(celsize.Bound).TooLarge(parsed.NativeRep().Expr()) {
			return nil, fmt.Errorf("CEL expression %q: %s", text, celsize.Reason)
		}
		checked, issues := env.Check(parsed)
		if issues.Err() != nil {
			return nil, fmt.Errorf("CEL expression %q: %w", text, issues.Err())
		}
		program, err := env.Program(checked, cel.CostLimit(maxCost), cel.CustomDecoratorV2(orderResults))
		if err != nil {
			return nil, fmt.Errorf("CEL expression %q: %w", text, err)
		}
		c.programs = append(c.programs, program)
	}
	return c, nil
}

func (c calculation) apply(b *budget, buf []byte, in, out [][]byte) []byte {
	var self any = map[string]any{}
	for i, names := range c.inputs {
		if in[i] == nil {
			continue
		}
		doc, err := jsondoc.Parse(in[i], jsondoc.Limits{})
		if err != nil {
			continue
		}
		value := doc.Any(jsondoc.Root)
		doc.Release()
		if len(names) == 0 {
			self = value
			continue
		}
		at := self.(map[string]any)
		for _, name := range names[:len(names)-1] {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
		}
		at[names[len(names)-1]] = value
	}
	for i, program := range c.programs {
		if b.exceeded {
			return buf
		}
		out[i] = c.evaluate(b, &buf, program, self, c.outputs[i])
	}
	return buf
}

// evaluate returns nothing if the expression fails, or has a value of another type than the field.
func (c calculation) evaluate(b *budget, buf *[]byte, program cel.Program, self any, to *field) (raw []byte) {
	defer func() {
		if recover() != nil { // CEL panics on some values: maps whose keys are bytes, for example
			raw = nil
		}
	}()
	result, details, err := program.Eval(map[string]any{"self": self})
	if cost := details.ActualCost(); cost != nil {
		b.spend(*cost)
	}
	if err != nil || result == nil || types.IsUnknownOrError(result) {
		return nil
	}
	value, ok := native(result, 0)
	if !ok {
		return nil
	}
	from := len(*buf)
	next, err := jsondoc.AppendAny(*buf, value)
	if err != nil {
		return nil
	}
	*buf = next
	raw = next[from:len(next):len(next)]
	if !to.kinds().Has(kindOf(raw)) || raw[0] == 'n' || to.scalar() == "integer" && !isInteger(raw) {
		return nil
	}
	if raw[0] == '{' || raw[0] == '[' {
		// What the server would prune of it would make it look changed, and what was saved would not come back.
		var all [1][]byte
		conforming{to.schema}.apply(b, nil, [][]byte{raw}, all[:])
		return all[0]
	}
	return raw
}

// maxNesting bounds the values of expressions.
const maxNesting = 100

// native returns a value of CEL as JSON has it.
func native(v ref.Val, depth int) (any, bool) {
	if depth > maxNesting {
		return nil, false
	}
	switch v := v.(type) {
	case types.Bool:
		return bool(v), true
	case types.Int:
		return int64(v), true
	case types.Uint:
		return int64(v), v <= math.MaxInt64
	case types.Double:
		return float64(v), !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
	case types.String:
		return string(v), true
	case types.Null:
		return nil, true
	case traits.Lister:
		list := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			item, ok := native(it.Next(), depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, item)
		}
		return list, true
	case traits.Mapper:
		all := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, isText := key.(types.String)
			value, ok := native(v.Get(key), depth+1)
			if !isText || !ok {
				return nil, false
			}
			all[string(name)] = value
		}
		return all, true
	}
	return nil, false
}

// kindOf returns the kind of canonical JSON.
func kindOf(raw []byte) jsondoc.Kind {
	switch raw[0] {
	case '{':
		return jsondoc.Object
	case '[':
		return jsondoc.Array
	case '"':
		return jsondoc.String
	case 't':
		return jsondoc.True
	case 'f':
		return jsondoc.False
	case 'n':
		return jsondoc.Null
	}
	return jsondoc.Number
}
