package exec

import (
	"math"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// wholeNumber returns a number as upstream reads it back from storage: whole
// numbers that fit are integers there, however the client has written them.
func wholeNumber(d *jsondoc.Doc, v jsondoc.Value) (int64, bool) {
	if i, ok := d.Int64(v); ok || d.IsCanonical(v) {
		return i, ok
	}
	var scratch [32]byte
	i, err := strconv.ParseInt(string(d.AppendCanonical(scratch[:0], v)), 10, 64)
	return i, err == nil
}

// numberValid reports whether a number satisfies n, but for logical keywords and enum.
func numberValid(d *jsondoc.Doc, v jsondoc.Value, n *plan.Node) bool {
	i, isInt := wholeNumber(d, v)
	if n.Flags&plan.Whole != 0 {
		switch {
		case isInt:
		case n.Flags&plan.IntOrString == 0 || !nearlyWhole(d.Float64(v)):
			return false
		}
	}
	if len(n.Asserts) == 0 {
		return true
	}
	f := float64(i)
	if !isInt {
		f = d.Float64(v)
	}
	for a := range n.Asserts {
		switch a := &n.Asserts[a]; a.Op {
		case plan.Format:
			if !inFormat(n, a.Text, i, isInt, f) {
				return false
			}
		case plan.Maximum, plan.ExclusiveMaximum, plan.Minimum, plan.ExclusiveMinimum, plan.MultipleOf:
			if a.OutOfRange || !withinBound(a.Op, math.Float64frombits(a.Num), i, isInt, f, wayOf(n)) {
				return false
			}
		}
	}
	return true
}

// inFormat reports whether a number is in the range of a numeric format, which
// counts only beside the type it belongs to.
func inFormat(n *plan.Node, name string, i int64, isInt bool, f float64) bool {
	if n.Flags&plan.IntOrString != 0 {
		return true
	}
	switch {
	case n.Type == plan.Integer && name == "int32":
		return isInt && i >= math.MinInt32 && i <= math.MaxInt32
	case n.Type == plan.Number && name == "float":
		return isInt || fitsFloat32(f)
	}
	return true
}

// fitsFloat32 asks what upstream asks: whether the number, printed, parses as a
// 32-bit float.
func fitsFloat32(f float64) bool {
	if math.Abs(f) <= math.MaxFloat32 {
		return true
	}
	_, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', -1, 64), 32)
	return err == nil
}

// way is how values are validated where clusters are mistaken.
type way uint8

const (
	// lenient accepts what clusters accept and what the schema says: no stored
	// object becomes invalid.
	lenient way = iota
	// literal accepts what clusters accept. Inside logical keywords to accept more
	// can be to refuse more.
	literal
	// strict accepts what is right.
	strict
)

func wayOf(n *plan.Node) way {
	switch {
	case n.Flags&plan.Strict != 0:
		return strict
	case n.Flags&plan.Literal != 0:
		return literal
	}
	return lenient
}

// withinBound reports whether a number keeps a bound.
//
// Upstream cuts off the fraction of a bound before it compares an integer with
// it: minimum 2.5 admits 2, maximum 2.5 exclusive refuses 2, and no integer is
// a multiple of 0.5.
func withinBound(op plan.Op, bound float64, i int64, isInt bool, f float64, w way) bool {
	if isInt && w != strict {
		if keepsWholeBound(op, truncated(bound), i) {
			return true
		}
		if w == literal {
			return false
		}
	}
	if isInt {
		if bound == math.Trunc(bound) && bound >= -1<<63 && bound < 1<<63 {
			return keepsWholeBound(op, truncated(bound), i) // nothing is cut off
		}
	}
	return keepsBound(op, bound, i, isInt, f)
}

// truncated is Go's conversion on the machines that clusters run on.
func truncated(bound float64) int64 {
	if bound >= 1<<63 || bound < -1<<63 || bound != bound {
		return math.MinInt64
	}
	return int64(bound)
}

func keepsWholeBound(op plan.Op, bound, i int64) bool {
	switch op {
	case plan.Maximum:
		return i <= bound
	case plan.ExclusiveMaximum:
		return i < bound
	case plan.Minimum:
		return i >= bound
	case plan.ExclusiveMinimum:
		return i > bound
	}
	return bound > 0 && i%bound == 0
}

func keepsBound(op plan.Op, bound float64, i int64, isInt bool, f float64) bool {
	c := compareFloats(f, bound)
	if isInt {
		c = compareIntFloat(i, bound)
	}
	switch op {
	case plan.Maximum:
		return c <= 0
	case plan.ExclusiveMaximum:
		return c < 0
	case plan.Minimum:
		return c >= 0
	case plan.ExclusiveMinimum:
		return c > 0
	}
	if bound <= 0 {
		return false
	}
	if bound < 1 {
		return nearlyWhole(1 / bound * f)
	}
	return nearlyWhole(f / bound)
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// compareIntFloat compares exactly, where a conversion would round.
func compareIntFloat(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := int64(f)
	switch {
	case i < whole:
		return -1
	case i > whole:
		return 1
	}
	return compareFloats(0, f-math.Trunc(f))
}

// nearlyWhole reports whether upstream takes a float for an integer: within a
// billionth of one, and small enough to be exact.
func nearlyWhole(f float64) bool {
	if math.Abs(f) > 1<<53-1 {
		return false
	}
	whole := math.Round(f)
	return f == whole || whole != 0 && math.Abs(f-whole) < 1e-9*math.Abs(whole)
}
