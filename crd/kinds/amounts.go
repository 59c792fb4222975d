package kinds

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// workloadFunctions are for what runs pods: amounts such as 25%, selectors, and indexes
// of Jobs.
func workloadFunctions() []cel.EnvOption {
	dyn, texts := cel.DynType, cel.ListType(cel.StringType)
	return append(indexFunctions(),
		cel.Function("checkDevice", cel.Overload("kinds_check_device", []*cel.Type{cel.StringType}, texts, cel.UnaryBinding(checkDevice))),
		cel.Function("readable", cel.Overload("kinds_readable", []*cel.Type{dyn}, cel.BoolType, cel.UnaryBinding(readable))),
		cel.Function("amount", cel.Overload("kinds_amount", []*cel.Type{dyn}, cel.IntType, cel.UnaryBinding(amount))),
		cel.Function("checkAmount", cel.Overload("kinds_check_amount", []*cel.Type{dyn}, texts, cel.UnaryBinding(checkAmount))),
		cel.Function("equalBut", cel.Overload("kinds_equal_but", []*cel.Type{dyn, dyn, texts}, cel.BoolType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val { return equalBut(args[0], args[1], args[2]) }))),
	)
}

// readable reports whether a label selector can be read.
func readable(v ref.Val) ref.Val {
	s, ok := labelSelector(v)
	if !ok {
		return types.NewErr("readable is for label selectors")
	}
	_, err := metav1.LabelSelectorAsSelector(s)
	return types.Bool(err == nil)
}

// amount is the number of an IntOrString, with or without a percent sign. What is none
// counts as 0.
func amount(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		n, _ := v.(types.Int)
		return n
	}
	digits, ok := strings.CutSuffix(string(s), "%")
	n, _ := strconv.ParseInt(digits, 10, 64) // of too many digits it is the largest number
	if !ok || len(validation.IsValidPercent(string(s))) > 0 {
		return types.Int(0)
	}
	return types.Int(n)
}

// checkAmount complains about an IntOrString that is neither a number from 0 nor a
// percentage.
func checkAmount(v ref.Val) ref.Val {
	var list []string
	if s, ok := v.(types.String); ok {
		list = validation.IsValidPercent(string(s))
	} else if n, ok := v.(types.Int); ok && n < 0 {
		list = []string{apivalidation.IsNegativeErrorMsg}
	}
	return types.NewStringList(types.DefaultTypeAdapter, list)
}

// equalBut compares two objects of a type without some of their fields. A path such as
// containers.resources is about a field of every item.
func equalBut(a, b, paths ref.Val) ref.Val {
	x, ok := a.(*object)
	y, same := b.(*object)
	if !ok || !same || x.t != y.t {
		return types.NewErr("equalBut is for objects of the same type")
	}
	left, right := copied(x.tree), copied(y.tree)
	list, _ := plain(paths).([]any)
	for _, path := range list {
		parts := strings.Split(fmt.Sprint(path), ".")
		without(left, parts)
		without(right, parts)
	}
	m, _ := left.(map[string]any)
	n, _ := right.(map[string]any)
	return types.Bool(equalObjects(x.t, m, n))
}

// without deletes the fields at a path.
func without(value any, path []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			without(item, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		without(v[path[0]], path[1:])
	}
}
