package compare

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// A feature of schemas that DIVERGENCES.md has a row about. A difference is an instance of the row if the reference
// has an error that only this feature gives, and if both sides agree as soon as the feature is taken out of the schema.
type feature struct {
	row   string
	error *regexp.Regexp               // the error of the reference that we do not have, or not in every case
	strip func(schema *tree.Node) bool // takes the feature out of one schema and says whether it was there
}

// unhashable is how the reference's evaluation of a rule crashes on a list map whose keys are objects or arrays.
var unhashable = regexp.MustCompile(`internal error: runtime error: hash of unhashable type (map\[string\]|\[\])interface`)

// crashedOnKeys reports whether an error or warning of the reference that we do not have is about such a crash.
func crashedOnKeys(ours, theirs *oracle.Validation) bool {
	return slices.ContainsFunc(slices.Concat(difference(theirs.Errors, ours.Errors), difference(theirs.Warnings, ours.Warnings)), unhashable.MatchString)
}

var features = []feature{
	{"fractional-bounds", regexp.MustCompile(`in body should be (less than|greater than|a multiple of)|MultipleOf declared`), stripBounds},
	{"enum-null", regexp.MustCompile(`^FieldValueNotSupported\|[^|]*\|null\|`), stripNulls},
}

// stripBounds removes bounds that no 64-bit integer equals. The reference truncates them when it compares integers.
func stripBounds(n *tree.Node) bool {
	found := false
	for _, keyword := range []string{"minimum", "maximum", "multipleOf"} {
		bound := n.Get(keyword)
		if bound == nil || bound.Kind != tree.Scalar {
			continue
		}
		if f, err := strconv.ParseFloat(bound.Raw, 64); err == nil && (f != math.Trunc(f) || f >= 1<<63 || f < -1<<63) {
			n.Del(keyword)
			found = true
		}
	}
	return found
}

// stripNulls removes enums that list null. The reference never finds it there.
func stripNulls(n *tree.Node) bool {
	enum := n.Get("enum")
	if enum == nil || enum.Kind != tree.Array || !slices.ContainsFunc(enum.Kids, func(k *tree.Node) bool { return k.Is("null") }) {
		return false
	}
	n.Del("enum")
	return true
}

// neutral are schemas without some features, compiled when they are first needed. The key has a bit for every feature.
type neutral struct {
	mu    sync.Mutex
	pairs map[int]*Pair
}

// without returns the pair of the schema without some features, or nil if the schema lacks one of them.
func (p *Pair) without(wanted int) *Pair {
	p.neutral.mu.Lock()
	defer p.neutral.mu.Unlock()
	if pair, ok := p.neutral.pairs[wanted]; ok {
		return pair
	}
	if p.neutral.pairs == nil {
		p.neutral.pairs = map[int]*Pair{}
	}
	p.neutral.pairs[wanted] = nil
	if schema := withoutFeatures(p.schema, wanted); schema != nil && p.mode != nil {
		p.neutral.pairs[wanted], _ = p.mode(schema)
	} else if schema != nil {
		p.neutral.pairs[wanted], _ = Compile(schema)
	}
	return p.neutral.pairs[wanted]
}

// withoutFeatures returns a schema without some features, or nil if it lacks one of them.
func withoutFeatures(schema []byte, wanted int) []byte {
	root, err := tree.Parse(schema)
	if err != nil {
		return nil
	}
	found := 0
	eachOutside(root, func(n *tree.Node) {
		for i, f := range features {
			if wanted>>i&1 != 0 && f.strip(n) {
				found |= 1 << i
			}
		}
	})
	if found != wanted {
		return nil
	}
	return root.Bytes()
}

// eachOutside visits the schemas outside allOf, anyOf, oneOf and not. Inside those Espalier follows the reference, and no difference is excused.
func eachOutside(n *tree.Node, visit func(*tree.Node)) {
	if n == nil || n.Kind != tree.Object {
		return
	}
	visit(n)
	eachOutside(n.Get("items"), visit)
	eachOutside(n.Get("additionalProperties"), visit)
	if props := n.Get("properties"); props != nil && props.Kind == tree.Object {
		for _, k := range props.Kids {
			eachOutside(k, visit)
		}
	}
}

// explained names the row of DIVERGENCES.md that a difference between validations is an instance of, or "".
func (p *Pair) explained(object []byte, o oracle.ValidateOptions, ours, theirs *oracle.Validation) string {
	if ours.Undecodable != nil || theirs.Undecodable != nil || ours.Panic != nil {
		return ""
	}
	if limited(ours, theirs) {
		return "error-limit"
	}
	if crashedOnKeys(ours, theirs) {
		return "list-map-key-crash"
	}
	wanted, row := suspects(ours, theirs)
	if wanted == 0 {
		return ""
	}
	pair := p.without(wanted)
	if pair == nil || p.trulyBroken(object, difference(theirs.Errors, ours.Errors)) {
		return ""
	}
	a, b := pair.ours.Validate(object, o), pair.theirs.Validate(object, o)
	if !equalValidations(&a, &b) {
		return ""
	}
	return row
}

// suspects are the features that may be behind a difference: those whose error is missing.
func suspects(ours, theirs *oracle.Validation) (wanted int, row string) {
	missing := difference(theirs.Errors, ours.Errors)
	for i, f := range features {
		if slices.ContainsFunc(missing, f.error.MatchString) {
			wanted |= 1 << i
			row = f.row
		}
	}
	return wanted, row
}

// limited reports whether ours are some of theirs, the others being counted only.
func limited(ours, theirs *oracle.Validation) bool {
	list := slices.DeleteFunc(slices.Clone(ours.Errors), func(e string) bool { return strings.HasSuffix(e, " errors omitted)") })
	return len(list) < len(ours.Errors) && len(difference(list, theirs.Errors)) == 0
}

// difference is what a has and b has not, as multisets.
func difference(a, b []string) []string {
	left := map[string]int{}
	for _, s := range b {
		left[s]++
	}
	var only []string
	for _, s := range a {
		if left[s] > 0 {
			left[s]--
			continue
		}
		only = append(only, s)
	}
	return only
}
