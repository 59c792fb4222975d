package kinds

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	random "k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// functions are those that expressions call besides Kubernetes' libraries.
func functions() []cel.EnvOption {
	var (
		dyn     = cel.DynType
		list    = cel.ListType(cel.DynType)
		texts   = cel.ListType(cel.StringType)
		strings = cel.MapType(cel.StringType, cel.StringType)
		members = cel.MapType(cel.DynType, cel.BoolType)
		values  = cel.MapType(cel.StringType, cel.DynType)
	)
	return []cel.EnvOption{
		cel.Function("set", cel.Overload("kinds_set", []*cel.Type{list}, members, cel.UnaryBinding(setOf))),
		cel.Function("firsts", cel.Overload("kinds_firsts", []*cel.Type{list}, cel.MapType(cel.DynType, cel.IntType), cel.UnaryBinding(firstsOf))),
		cel.Function("ipWarnings", cel.Overload("kinds_ip_warnings", []*cel.Type{cel.StringType, cel.StringType}, texts, cel.BinaryBinding(warningsOf(validation.GetWarningsForIP)))),
		cel.Function("cidrWarnings", cel.Overload("kinds_cidr_warnings", []*cel.Type{cel.StringType, cel.StringType}, texts, cel.BinaryBinding(warningsOf(validation.GetWarningsForCIDR)))),
		cel.Function("repeated", cel.Overload("kinds_repeated", []*cel.Type{list}, cel.ListType(cel.IntType), cel.UnaryBinding(repeated))),
		cel.Function("overlaps", cel.Overload("kinds_overlaps", []*cel.Type{list}, texts, cel.UnaryBinding(overlaps))),
		cel.Function("check", cel.Overload("kinds_check", []*cel.Type{cel.StringType, cel.StringType}, texts, cel.BinaryBinding(checkText))),
		cel.Function("now", cel.Overload("kinds_now", []*cel.Type{dyn}, cel.StringType, cel.UnaryBinding(now))),
		cel.Function("uuid", cel.Overload("kinds_uuid", []*cel.Type{dyn}, cel.StringType, cel.UnaryBinding(func(ref.Val) ref.Val { return types.String(random.NewUUID()) }))),
		cel.Function("age", cel.Overload("kinds_age", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(ageOf))),
		cel.Function("elapsed", cel.Overload("kinds_elapsed", []*cel.Type{cel.StringType, cel.StringType}, cel.StringType, cel.BinaryBinding(elapsed))),
		cel.Function("qty", cel.Overload("kinds_qty", []*cel.Type{cel.StringType}, cel.IntType, cel.UnaryBinding(quantity((*resource.Quantity).Value)))),
		cel.Function("milli", cel.Overload("kinds_milli", []*cel.Type{cel.StringType}, cel.IntType, cel.UnaryBinding(quantity(milli)))),
		cel.Function("whole", cel.Overload("kinds_whole", []*cel.Type{cel.StringType}, cel.BoolType, cel.UnaryBinding(whole))),
		cel.Function("compareQuantities", cel.Overload("kinds_compare", []*cel.Type{cel.StringType, cel.StringType}, cel.IntType, cel.BinaryBinding(compareTexts))),
		cel.Function("firstIndexes", cel.Overload("kinds_first_indexes", []*cel.Type{list}, cel.ListType(cel.IntType), cel.UnaryBinding(firstIndexes))),
		cel.Function("sumQuantities", cel.Overload("kinds_sum", []*cel.Type{texts}, cel.StringType, cel.UnaryBinding(sumQuantities))),
		cel.Function("shorten", cel.Overload("kinds_shorten", []*cel.Type{texts}, cel.StringType, cel.UnaryBinding(shorten)),
			cel.Overload("kinds_shorten_count", []*cel.Type{texts, cel.IntType}, cel.StringType, cel.BinaryBinding(shortenCounted))),
		cel.Function("merge", cel.Overload("kinds_merge", []*cel.Type{dyn, dyn}, values, cel.BinaryBinding(merge))),
		cel.Function("selector", cel.Overload("kinds_selector", []*cel.Type{dyn}, cel.StringType, cel.UnaryBinding(selectorText))),
		cel.Function("labels", cel.Overload("kinds_labels", []*cel.Type{strings}, cel.StringType, cel.UnaryBinding(labelsText))),
		cel.Function("selects", cel.Overload("kinds_selects", []*cel.Type{dyn, strings}, cel.BoolType, cel.BinaryBinding(selects))),
		cel.Function("equal", cel.Overload("kinds_equal", []*cel.Type{dyn, dyn}, cel.BoolType, cel.BinaryBinding(equal))),
		cel.Function("json", cel.Overload("kinds_json", []*cel.Type{dyn}, cel.StringType, cel.UnaryBinding(jsonText))),
		cel.Function("int32", cel.Overload("kinds_int32", []*cel.Type{dyn}, cel.BoolType, cel.UnaryBinding(isInt32))),
	}
}

// setOf makes a map of a list, so that `in` takes constant time.
func setOf(list ref.Val) ref.Val {
	m := map[ref.Val]ref.Val{}
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		if types.IsError(item) {
			return item
		}
		if !hashable(item) {
			return types.NewErr("set is for strings, numbers and booleans")
		}
		m[item] = types.True
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, m)
}

// firstsOf makes a map of a list: to the index of the first item that is equal.
func firstsOf(list ref.Val) ref.Val {
	m := map[ref.Val]ref.Val{}
	var index types.Int
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; index++ {
		item := it.Next()
		if types.IsError(item) {
			return item
		}
		if !hashable(item) {
			return types.NewErr("firsts is for strings, numbers and booleans")
		}
		if _, ok := m[item]; !ok {
			m[item] = index
		}
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, m)
}

// warningsOf makes a function of a path and a text.
func warningsOf(warnings func(*field.Path, string) []string) func(at, value ref.Val) ref.Val {
	return func(at, value ref.Val) ref.Val {
		list := warnings(field.NewPath(string(at.(types.String))), string(value.(types.String)))
		return types.NewStringList(types.DefaultTypeAdapter, list)
	}
}

// shorten joins at most three texts, and says how many more there are.
func shorten(list ref.Val) ref.Val { return shortenCounted(list, types.Int(0)) }

// shortenCounted is for the first texts of more, whose number is count.
func shortenCounted(list, count ref.Val) ref.Val {
	var all []string
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		t, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("shorten is for strings")
		}
		all = append(all, string(t))
	}
	const most = 3
	n := max(int(count.(types.Int)), len(all))
	if n <= most {
		return types.String(strings.Join(all, ","))
	}
	return types.String(fmt.Sprintf("%s + %d more...", strings.Join(all[:min(most, len(all))], ","), n-most))
}

// repeated returns the places of the items that a list has before them, too.
func repeated(list ref.Val) ref.Val {
	seen, places := map[ref.Val]bool{}, []ref.Val{}
	at := types.Int(0)
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; at++ {
		item := it.Next()
		if types.IsError(item) {
			return item
		}
		if !hashable(item) {
			return types.NewErr("repeated is for strings, numbers and booleans")
		}
		if seen[item] {
			places = append(places, at)
		}
		seen[item] = true
	}
	return types.NewRefValList(types.DefaultTypeAdapter, places)
}

// sumQuantities adds quantities. What is none counts as 0.
func sumQuantities(list ref.Val) ref.Val {
	var sum resource.Quantity
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		s, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("sumQuantities is for quantities")
		}
		if q, err := parseQuantity(string(s)); err == nil {
			sum.Add(q)
		}
	}
	return types.String(sum.String())
}

// now is the time. CEL computes calls without arguments once, so there is one.
func now(ref.Val) ref.Val { return types.String(time.Now().UTC().Format(time.RFC3339)) }

// firstIndexes has for every item of a list the index of the first that is equal.
func firstIndexes(list ref.Val) ref.Val {
	seen := map[ref.Val]int64{}
	var indexes []int64
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		if types.IsError(item) {
			return item
		}
		if !hashable(item) {
			return types.NewErr("firstIndexes is for strings, numbers and booleans")
		}
		first, ok := seen[item]
		if !ok {
			first = int64(len(indexes))
			seen[item] = first
		}
		indexes = append(indexes, first)
	}
	return types.DefaultTypeAdapter.NativeToValue(indexes)
}

func hashable(v ref.Val) bool {
	switch v.(type) {
	case types.String, types.Int, types.Bool:
		return true
	}
	return false
}

func checkText(format, value ref.Val) ref.Val {
	list, err := check(string(format.(types.String)), string(value.(types.String)))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.NewStringList(types.DefaultTypeAdapter, list)
}

// ageOf is how long ago a time was, as kubectl shows it.
func ageOf(value ref.Val) ref.Val {
	t, err := time.Parse(time.RFC3339, string(value.(types.String)))
	if err != nil {
		return types.String("<unknown>")
	}
	return types.String(duration.HumanDuration(time.Since(t)))
}

// elapsed is the time between two, as kubectl shows it. Without an end, it is now.
func elapsed(start, end ref.Val) ref.Val {
	from, err := time.Parse(time.RFC3339, string(start.(types.String)))
	if err != nil {
		return types.String("<unknown>")
	}
	to, err := time.Parse(time.RFC3339, string(end.(types.String)))
	if err != nil {
		to = time.Now()
	}
	return types.String(duration.HumanDuration(to.Sub(from)))
}

// quantity makes a function of quantities. What is none counts as 0.
func quantity(of func(*resource.Quantity) int64) func(ref.Val) ref.Val {
	return func(value ref.Val) ref.Val {
		q, err := parseQuantity(string(value.(types.String)))
		if err != nil {
			return types.Int(0)
		}
		return types.Int(of(&q))
	}
}

// whole reports whether a quantity is a whole number. As in kube-apiserver, many that an
// int64 does not hold in thousandths are, and some are not. What is none counts as 0.
func whole(value ref.Val) ref.Val {
	q, err := parseQuantity(string(value.(types.String)))
	return types.Bool(err != nil || q.MilliValue()%1000 == 0)
}

// milli is the value of a quantity in thousandths, as far as an int64 holds it.
func milli(q *resource.Quantity) int64 {
	if q.Value() > math.MaxInt64/1000 {
		return math.MaxInt64
	}
	return q.MilliValue()
}

func compareTexts(a, b ref.Val) ref.Val {
	return types.Int(compareQuantities(string(a.(types.String)), string(b.(types.String))))
}

// merge joins two maps. The second wins.
func merge(a, b ref.Val) ref.Val {
	out := map[string]any{}
	for _, v := range []ref.Val{a, b} {
		m, ok := plain(v).(map[string]any)
		if !ok {
			return types.NewErr("merge is for maps")
		}
		for key, value := range m {
			out[key] = value
		}
	}
	return merged{types.NewStringInterfaceMap(types.DefaultTypeAdapter, out), out}
}

// merged is a map that merge has made, with its tree: rules merge whole objects to compare
// them without some fields, and making a tree again would visit all that is below.
type merged struct {
	traits.Mapper
	tree map[string]any
}

// labelSelector reads a label selector. A missing object selects nothing.
func labelSelector(v ref.Val) (*metav1.LabelSelector, bool) {
	o, ok := v.(*object)
	if !ok || o.tree == nil {
		return nil, ok
	}
	s := &metav1.LabelSelector{}
	return s, into(o.tree, s)
}

func selectorText(v ref.Val) ref.Val {
	s, ok := labelSelector(v)
	if !ok {
		return types.NewErr("selector is for label selectors")
	}
	return types.String(metav1.FormatLabelSelector(s))
}

func labelsText(v ref.Val) ref.Val { return types.String(labels.FormatLabels(texts(plain(v)))) }

// selects reports whether a label selector selects some labels. One that cannot be read
// selects none.
func selects(v, of ref.Val) ref.Val {
	s, ok := labelSelector(v)
	if !ok {
		return types.NewErr("selects is for label selectors")
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	return types.Bool(err == nil && parsed.Matches(labels.Set(texts(plain(of)))))
}

// equal compares as Go's semantic equality does.
func equal(a, b ref.Val) ref.Val {
	if x, ok := a.(*object); ok {
		return x.Equal(b)
	}
	return types.Bool(same(plain(a), plain(b)))
}

// same compares trees whose types are not known. Empty and absent are equal.
func same(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case []any:
		y, _ := b.([]any)
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return b == nil || y != nil
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok && b != nil {
			return false
		}
		for key := range x {
			if !same(x[key], y[key]) {
				return false
			}
		}
		for key := range y {
			if _, ok := x[key]; !ok && !same(y[key], nil) {
				return false
			}
		}
		return true
	case nil:
		if b == nil {
			return true
		}
		v := reflect.ValueOf(b)
		return (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	}
	return reflect.DeepEqual(a, b)
}

func jsonText(v ref.Val) ref.Val { return types.String(text(plain(v))) }

// isInt32 reports whether a number fits into 32 bits.
func isInt32(v ref.Val) ref.Val {
	n, ok := v.(types.Int)
	if !ok {
		return types.NewErr("%s", fmt.Sprintf("int32 is for integers, not for %s", v.Type().TypeName()))
	}
	return types.Bool(n >= math.MinInt32 && n <= math.MaxInt32)
}
