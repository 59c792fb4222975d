package cel

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// The API server's static estimate is an estimate: it takes keys of maps to be
// empty, numbers and objects to have no size, the result of split to be no
// longer than the string, and prices some functions lower than evaluation does.
// What follows is a bound: what an expression costs, as evaluation counts it,
// never exceeds it. It is calculated like the estimate, with sizes that hold
// for a given document instead of a schema, and only for functions whose prices
// are known to be bounds.

// level is a class of documents, by how large their parts are. Bounds are known
// per level, so that they need not be calculated for each document.
type level struct {
	elements uint64 // of an object or an array, at most
	text     uint64 // bytes of a string or key, at most
}

var levels = [...]level{{16, 128}, {48, 512}, {128, 2 << 10}, {1 << 10, 16 << 10}, {16 << 10, 256 << 10}}

// bounds are the bounds of an expression by level; unbounded where there is
// none.
type bounds [len(levels)]uint32

const unbounded = math.MaxUint32

// sizeOf returns the level that documents are exactly of.
func sizeOf(docs ...*jsondoc.Doc) level {
	var most level
	for _, d := range docs {
		if d != nil {
			most.measure(d)
		}
	}
	return most
}

// class returns the first of the levels that l is within, or -1.
func (l level) class() int {
	for i, c := range levels {
		if l.elements <= c.elements && l.text <= c.text {
			return i
		}
	}
	return -1
}

// rounded returns a level that l is within and that others are too, so that
// what is calculated for it is of use again.
func (l level) rounded() level { return level{roundUp(l.elements), roundUp(l.text)} }

// roundUp rounds to three significant bits.
func roundUp(n uint64) uint64 {
	if shift := bits.Len64(n) - 3; shift > 0 {
		return (n + 1<<shift - 1) >> shift << shift
	}
	return n
}

// measure widens l to the parts of d.
func (l *level) measure(d *jsondoc.Doc) {
	for v, end := jsondoc.Root, d.Next(jsondoc.Root); v < end; v++ {
		switch d.Kind(v) {
		case jsondoc.String: // and keys
			n := uint64(d.End(v) - d.Offset(v))
			if !d.Plain(v) {
				n *= 3 // a byte that is not UTF-8 is read as a character of three
			}
			l.text = max(l.text, n)
		case jsondoc.Array:
			l.elements = max(l.elements, uint64(d.Len(v)))
		case jsondoc.Object:
			l.elements = max(l.elements, members(d, v))
		}
	}
}

func members(d *jsondoc.Doc, v jsondoc.Value) uint64 {
	if d.Sorted(v) {
		return uint64(d.Len(v))
	}
	n := uint64(0)
	for k, end := v+1, d.Next(v); k < end; k = d.Next(k + 1) {
		n++
	}
	return n
}

// bound calculates the bounds of e.
func (e *expression) bound() bounds {
	var b bounds
	for i := range b {
		b[i] = unbounded
	}
	penalty, ok := e.penalty()
	if !ok {
		return b
	}
	// Larger documents cost no less. Most expressions cost little on any.
	last := len(levels) - 1
	if b[last] = e.boundFor(levels[last], penalty); b[last] <= cheap {
		for i := range b {
			b[i] = b[last]
		}
		return b
	}
	for i, l := range levels[:last] {
		if b[i] = e.boundFor(l, penalty); b[i] == unbounded {
			break
		}
	}
	return b
}

// cheap is a cost that an object's budget has room for thousands of times.
const cheap = 1000

// boundFor calculates the bound for documents of a level.
func (e *expression) boundFor(l level, penalty uint64) uint32 {
	c, err := e.lang.env.EstimateCost(e.ast, &bounder{lib: library.CostEstimator{SizeEstimator: sizer(l)}})
	if err != nil || c.Max > unbounded/penalty {
		return unbounded
	}
	return uint32(c.Max * penalty)
}

// sizer says how large parts of a document of some level are.
type sizer level

// EstimateSize implements checker.CostEstimator. An element whose path begins
// with a variable is a part of a document; of others only the type is known.
func (s sizer) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	most := max(s.elements, s.text)
	switch element.Type().Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind, types.NullTypeKind, types.TypeKind:
		return &checker.SizeEstimate{Max: 1}
	case types.StringKind, types.BytesKind:
		most = s.text
	case types.ListKind, types.MapKind, types.StructKind:
		most = s.elements
	}
	path := element.Path()
	if len(path) == 0 || path[0] != selfName && path[0] != oldSelfName {
		return nil
	}
	return &checker.SizeEstimate{Max: most}
}

// EstimateCallCost implements checker.CostEstimator.
func (s sizer) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// bounder corrects the library's prices and sizes where evaluation can exceed
// them.
type bounder struct{ lib library.CostEstimator }

// EstimateSize implements checker.CostEstimator.
func (b *bounder) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	return b.lib.EstimateSize(element)
}

// EstimateCallCost implements checker.CostEstimator.
func (b *bounder) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	c := b.lib.EstimateCallCost(function, overload, target, args)
	if c == nil {
		return nil
	}
	switch function {
	case "join":
		// Evaluation counts the result twice.
		c.CostEstimate = c.MultiplyByCostFactor(2)
	case "validate":
		// Evaluation counts one character more.
		c.CostEstimate = c.Add(checker.FixedCostEstimate(32))
	case "split", "findAll":
		// There is one part more than there are separators, and one match more
		// than there are characters.
		if c.ResultSize != nil && c.ResultSize.Max < math.MaxUint64 {
			c.ResultSize = &checker.SizeEstimate{Min: c.ResultSize.Min, Max: c.ResultSize.Max + 1}
		}
	}
	return c
}

// priced are the functions whose price, corrected, is never less than what
// evaluation counts.
var priced = sets.New(
	"!_", "-_", "@in", "_in_", "in", "@not_strictly_false", "_!=_", "_%_", "_&&_", "_*_", "_+_", "_-_", "_/_",
	"_<=_", "_<_", "_==_", "_>=_", "_>_", "_?._", "_?_:_", "_[?_]", "_[_]", "_||_",
	"bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint", "size",
	"charAt", "contains", "endsWith", "find", "findAll", "format", "join", "lowerAscii", "matches", "replace", "split",
	"startsWith", "strings.quote", "substring", "trim", "upperAscii",
	"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes",
	"getMonth", "getSeconds",
	"hasValue", "optional.none", "optional.of", "or", "orValue", "value",
	"getEscapedPath", "getHost", "getHostname", "getPort", "getQuery", "getScheme", "isURL", "url",
	"cidr", "family", "ip", "ip.isCanonical", "isCIDR", "isGlobalUnicast", "isIP", "isLinkLocalMulticast", "isLinkLocalUnicast",
	"isLoopback", "isUnspecified", "masked", "prefixLength", "containsIP", "containsCIDR",
	"add", "asApproximateFloat", "asInteger", "compareTo", "isGreaterThan", "isInteger", "isLessThan", "isQuantity", "quantity",
	"sign", "sub", "isSemver", "major", "minor", "patch", "semver",
	"format.named", "validate", "format.byte", "format.date", "format.datetime", "format.dns1035Label", "format.dns1035LabelPrefix",
	"format.dns1123Label", "format.dns1123LabelPrefix", "format.dns1123Subdomain", "format.dns1123SubdomainPrefix",
	"format.labelValue", "format.qualifiedName", "format.uri", "format.uuid",
	"sets.contains", "sets.equivalent", "sets.intersects",
)

// traversing are functions that evaluation prices by all that is in a list, and
// estimates by the items only.
var traversing = sets.New("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes")

// penalty returns a factor that makes the calculated cost of e a bound. It
// reports false if there is none.
func (e *expression) penalty() (uint64, bool) {
	tree := e.tree()
	factor, ok := uint64(1), true
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.CallKind:
			ok = ok && isPriced(tree, x.AsCall())
		case ast.SelectKind:
			// Selecting from what is not known to be an object is free in the
			// estimate and costs one in evaluation. It happens as often as what
			// it selects from is evaluated, which is not free.
			switch tree.GetType(x.AsSelect().Operand().ID()).Kind() {
			case types.MapKind, types.StructKind, types.TypeParamKind:
			default:
				factor++
			}
		case ast.StructKind:
			ok = false
		}
	}))
	return factor, ok
}

func isPriced(tree *ast.AST, call ast.CallExpr) bool {
	name := call.FunctionName()
	if priced.Has(name) {
		return true
	}
	if !traversing.Has(name) || !call.IsMemberFunction() {
		return false
	}
	t := tree.GetType(call.Target().ID())
	if t.Kind() == types.ListKind {
		t = t.Parameters()[0]
	}
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind, types.StringKind, types.BytesKind:
		return true
	}
	return false
}
