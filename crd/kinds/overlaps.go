package kinds

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// mostOverlaps bounds the answer of overlaps: n paths may have n*n of them.
const mostOverlaps = 100

// overlaps returns a text for every two paths that are equal or one below the other.
// The items of the list are a path and where it comes from, which may be empty.
func overlaps(list ref.Val) ref.Val {
	items, _ := plain(list).([]any)
	var found []string
	names := map[string][]string{} // of the paths before, by path
	below := map[string][]string{} // and by every path that they are below
	for _, item := range items {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			return types.NewErr("overlaps is for lists of pairs")
		}
		path, source := fmt.Sprint(pair[0]), fmt.Sprint(pair[1])
		if path == "" {
			continue
		}
		name := fmt.Sprintf("%q", path)
		if source != "" {
			name += " (" + source + ")"
		}
		others := append(above(path, names), names[path]...)
		for _, other := range append(others, below[path]...) {
			if len(found) == mostOverlaps {
				break
			}
			found = append(found, "overlapping paths: "+name+" with "+other)
		}
		if len(names[path]) < mostOverlaps {
			names[path] = append(names[path], name)
		}
		for i := range path {
			if dir := path[:i]; path[i] == '/' && len(below[dir]) < mostOverlaps {
				below[dir] = append(below[dir], name)
			}
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, unique(found))
}

// above returns the names of the folders that a path is in.
func above(path string, names map[string][]string) []string {
	var found []string
	for i := strings.IndexByte(path, '/'); i >= 0; {
		found = append(found, names[path[:i]]...)
		next := strings.IndexByte(path[i+1:], '/')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return found
}

// unique drops what a list has before.
func unique(list []string) []string {
	seen := map[string]bool{}
	out := []string{}
	for _, s := range list {
		if !seen[s] {
			out = append(out, s)
		}
		seen[s] = true
	}
	return out
}
