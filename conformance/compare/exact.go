package compare

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// trulyBroken reports whether one of the errors about bounds is right: the row fractional-bounds excuses only that the
// reference refuses a number which keeps the bound.
func (p *Pair) trulyBroken(object []byte, missing []string) bool {
	schema, err := tree.Parse(p.schema)
	if err != nil {
		return false
	}
	root, err := tree.Parse(object)
	if err != nil {
		return false
	}
	bounds := map[string]standing{}
	eachBound(schema, root, "", bounds)
	for _, e := range missing {
		if bounds[boundOf(e)] == isBroken {
			return true
		}
	}
	return false
}

// owed names the error that both sides have though the rows fractional-bounds and enum-null say that Espalier does not
// have it, or "". A row that is only allowed to differ would hide the bug that it no longer does.
func (p *Pair) owed(object []byte, ours *oracle.Validation) string {
	schema := p.plainTree()
	if schema == nil || slices.ContainsFunc(ours.Errors, func(e string) bool { return strings.Contains(e, "must be of type") }) {
		return "" // a bound that the type cannot have is wrong for every value
	}
	root, err := tree.Parse(object)
	if err != nil {
		return ""
	}
	bounds := map[string]standing{}
	eachBound(schema, root, "", bounds)
	for _, e := range ours.Errors {
		if bounds[boundOf(e)] == isKept {
			return e
		}
	}
	return ""
}

// plainTree is the schema, if it has a bound or an enum that a row is about and nothing that makes its errors ambiguous.
func (p *Pair) plainTree() *tree.Node {
	p.plainOnce.Do(func() {
		for _, junctor := range []string{"allOf", "anyOf", "oneOf", "not"} {
			if bytes.Contains(p.schema, []byte(`"`+junctor+`"`)) {
				return
			}
		}
		root, err := tree.Parse(p.schema)
		if err != nil {
			return
		}
		found := false
		eachOutside(root, func(n *tree.Node) {
			found = found || stripBounds(copied(n)) || stripNulls(copied(n))
		})
		if found {
			p.plain = root
		}
	})
	return p.plain
}

func copied(n *tree.Node) *tree.Node {
	return &tree.Node{Kind: n.Kind, Raw: n.Raw, Keys: slices.Clone(n.Keys), Kids: slices.Clone(n.Kids)}
}

// boundOf is the field and the keyword that an error is about.
func boundOf(e string) string {
	parts := strings.SplitN(e, "|", 4)
	if len(parts) < 4 {
		return ""
	}
	switch {
	case strings.Contains(parts[3], "in body should be less than"):
		return parts[1] + "|maximum"
	case strings.Contains(parts[3], "in body should be greater than"):
		return parts[1] + "|minimum"
	case strings.Contains(parts[3], "in body should be a multiple of"), strings.Contains(parts[3], "MultipleOf declared"):
		return parts[1] + "|multipleOf"
	case parts[0] == "FieldValueNotSupported" && parts[2] == "null":
		return parts[1] + "|enum"
	}
	return ""
}

// A standing is how a value stands to a bound, compared exactly.
type standing uint8

const (
	isUnclear standing = iota
	isBroken
	isKept // and the reference may find it broken
)

// eachBound collects how the values of an object stand to the bounds of their schemas, by field and keyword.
func eachBound(schema, value *tree.Node, path string, bounds map[string]standing) {
	if schema == nil || schema.Kind != tree.Object {
		return
	}
	if value.Is("null") && schema.Get("nullable").Is("true") && stripNulls(copied(schema)) {
		bounds[path+"|enum"] = isKept
	}
	switch value.Kind {
	case tree.Array:
		for i, kid := range value.Kids {
			eachBound(schema.Get("items"), kid, path+"["+strconv.Itoa(i)+"]", bounds)
		}
	case tree.Object:
		props, extra := schema.Get("properties"), schema.Get("additionalProperties")
		for i, kid := range value.Kids {
			name := tree.Unquote(value.Keys[i])
			sub := extra
			if props.Find(name) >= 0 {
				sub = props.Get(name)
			}
			below := name
			if path != "" {
				below = path + "." + name
			}
			eachBound(sub, kid, below, bounds)
		}
	default:
		for _, keyword := range []string{"minimum", "maximum", "multipleOf"} {
			bounds[path+"|"+keyword] = compared(schema, keyword, value.Raw)
		}
	}
}

// compared compares a number with a bound as the float that both sides read.
func compared(schema *tree.Node, keyword, raw string) standing {
	bound, err := strconv.ParseFloat(schema.Get(keyword).Literal(), 64)
	if err != nil || math.IsInf(bound, 0) || math.IsNaN(bound) {
		return isUnclear
	}
	value, ok := new(big.Rat).SetString(raw)
	if !ok || len(raw) > 400 {
		return isUnclear
	}
	broken := false
	if keyword == "multipleOf" {
		f, _ := value.Float64()
		quotient := f / bound
		off := math.Abs(quotient - math.Round(quotient))
		switch {
		case bound <= 0 || math.Abs(quotient) < 1e15 && off > 1e-6*math.Max(1, math.Abs(quotient)):
			broken = true
		case math.Abs(quotient) > 1e9 || off != 0 || 1/bound*f != quotient:
			return isUnclear // a question of rounding
		}
	} else {
		c := value.Cmp(new(big.Rat).SetFloat64(bound))
		if keyword == "minimum" {
			c = -c
		}
		exclusive := "exclusive" + strings.ToUpper(keyword[:1]) + keyword[1:]
		broken = c > 0 || c == 0 && schema.Get(exclusive).Is("true")
	}
	if broken {
		return isBroken
	}
	// The reference cuts off the fraction for integers only.
	if _, err := strconv.ParseInt(raw, 10, 64); err == nil && (bound != math.Trunc(bound) || bound >= 1<<63 || bound < -1<<63) {
		return isKept
	}
	return isUnclear
}
