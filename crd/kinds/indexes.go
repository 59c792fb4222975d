package kinds

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// indexFunctions are for the indexes of Jobs, such as "1,3-5,7".
func indexFunctions() []cel.EnvOption {
	one := []*cel.Type{cel.StringType}
	return []cel.EnvOption{
		cel.Function("checkIndexes", cel.Overload("kinds_check_indexes", []*cel.Type{cel.StringType, cel.IntType},
			cel.ListType(cel.StringType), cel.BinaryBinding(checkIndexes))),
		cel.Function("countIndexes", cel.Overload("kinds_count_indexes", one, cel.IntType, cel.UnaryBinding(countIndexes))),
		cel.Function("sharedIndex", cel.Overload("kinds_shared_index", []*cel.Type{cel.StringType, cel.StringType}, cel.IntType,
			cel.BinaryBinding(sharedIndex))),
	}
}

// interval is a number of consecutive indexes.
type interval struct{ first, last int64 }

// parseIndexes reads indexes below a limit. On failure, it returns those before.
func parseIndexes(s string, limit int64) ([]interval, error) {
	if s == "" {
		return nil, nil
	}
	var list []interval
	last := int64(-1)
	for fragment := range strings.SplitSeq(s, ",") {
		parts := strings.Split(fragment, "-")
		if len(parts) > 2 {
			return list, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", fragment)
		}
		for i, part := range parts {
			n, err := strconv.Atoi(part)
			if err != nil {
				return list, fmt.Errorf("cannot convert string to integer for index: %q", part)
			}
			if int64(n) >= limit {
				return list, fmt.Errorf("too large index: %q", part)
			}
			if int64(n) <= last {
				return list, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, n)
			}
			last = int64(n)
			if i == 0 {
				list = append(list, interval{last, last})
			}
		}
		list[len(list)-1].last = last
	}
	return list, nil
}

// most is a limit above all indexes.
const most = 1 << 62

func checkIndexes(s, limit ref.Val) ref.Val {
	var texts []string
	if _, err := parseIndexes(string(s.(types.String)), int64(limit.(types.Int))); err != nil {
		texts = []string{err.Error()}
	}
	return types.NewStringList(types.DefaultTypeAdapter, texts)
}

func countIndexes(s ref.Val) ref.Val {
	list, _ := parseIndexes(string(s.(types.String)), most) // a rule before this one reports failures
	var n int64
	for _, i := range list {
		n += i.last - i.first + 1
	}
	return types.Int(n)
}

// sharedIndex is the first index that both have, and -1 if none is.
func sharedIndex(a, b ref.Val) ref.Val {
	x, _ := parseIndexes(string(a.(types.String)), most)
	y, _ := parseIndexes(string(b.(types.String)), most)
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].last < y[0].first:
			x = x[1:]
		case y[0].last < x[0].first:
			y = y[1:]
		default:
			return types.Int(max(x[0].first, y[0].first))
		}
	}
	return types.Int(-1)
}
