package cel

import (
	"strings"

	"k8s.io/apiserver/pkg/cel"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// sizes computes how large values can be and must be. Costs are estimated from
// these numbers, and a CRD is refused because of estimates: they have to be
// the API server's to the last digit.
type sizes struct {
	views   *resources
	minimum map[*plan.Node]int64
}

func newSizes(views *resources) *sizes {
	return &sizes{views: views, minimum: map[*plan.Node]int64{}}
}

// maxText is the length of the longest string in a request.
const maxText = cel.DefaultMaxRequestSizeBytes - 2

// min returns the number of bytes that a value of n has at least.
func (s *sizes) min(n *plan.Node, resource bool) int64 {
	if n.Flags&plan.IntOrString != 0 {
		return 1
	}
	if resource {
		n = s.views.view(n)
	}
	switch n.Type {
	case plan.Array:
		return 2
	case plan.Object:
		if n.Additional != nil {
			return 2
		}
		return s.minObject(n)
	case plan.String:
		switch formatOf(n) {
		case "duration":
			return cel.MinDurationSizeJSON
		case "date":
			return cel.JSONDateSize
		case "date-time":
			return cel.MinDatetimeSizeJSON
		}
		return cel.MinStringSize
	case plan.Boolean:
		return cel.MinBoolSize
	}
	return cel.MinNumberSize
}

// minObject counts the fields that an object must have and that are not filled
// in for it.
func (s *sizes) minObject(n *plan.Node) int64 {
	if size, ok := s.minimum[n]; ok {
		return size
	}
	size := int64(2)
	if a := assertion(n, plan.Required); a != nil {
		seen := make(map[int]bool, len(a.List))
		for _, name := range a.List {
			rank := n.Props.Lookup([]byte(name))
			if rank < 0 || seen[rank] {
				continue
			}
			seen[rank] = true
			if p := n.Props.At(rank).Node; exposed(p) && p.Flags&plan.HasDefault == 0 {
				size += int64(len(name)) + s.min(p, isEmbedded(p)) + 4
			}
		}
	}
	s.minimum[n] = size
	return size
}

// max returns the number of elements that a value of n can have: items, members
// of a map, bytes of a string. It is 0 for values that have no elements.
func (s *sizes) max(n *plan.Node) int64 {
	if n.Flags&plan.IntOrString != 0 {
		return maxLength(n, 4)
	}
	switch n.Type {
	case plan.Array:
		if !exposed(n.Items) {
			return 0
		}
		if stated, ok := bound(n, plan.MaxItems); ok {
			return max(stated, 0)
		}
		return (cel.DefaultMaxRequestSizeBytes - 2) / (s.min(n.Items, isEmbedded(n.Items)) + 1)
	case plan.Object:
		if n.Additional == nil || !exposed(n.Additional) {
			return 0
		}
		if stated, ok := bound(n, plan.MaxProperties); ok {
			return max(stated, 0)
		}
		return (cel.DefaultMaxRequestSizeBytes - 2) / (s.min(n.Additional, isEmbedded(n.Additional)) + 6)
	case plan.String:
		return maxString(n)
	}
	return 0
}

func maxString(n *plan.Node) int64 {
	switch formatOf(n) {
	case "byte":
		return maxLength(n, 1)
	case "duration":
		return cel.MaxDurationSizeJSON
	case "date":
		return cel.JSONDateSize
	case "date-time":
		return cel.MaxDatetimeSizeJSON
	}
	if a := assertion(n, plan.Enum); a != nil && assertion(n, plan.MaxLength) == nil {
		return longest(a.List)
	}
	return maxLength(n, 4)
}

// maxLength returns the bytes of a string of at most maxLength characters, of
// up to width bytes each.
func maxLength(n *plan.Node, width int64) int64 {
	if stated, ok := bound(n, plan.MaxLength); ok {
		return max(stated, 0) * width
	}
	return maxText
}

// longest returns the length of the longest string among values written in
// JSON.
func longest(values []string) int64 {
	length := 0
	for _, v := range values {
		if strings.HasPrefix(v, `"`) {
			length = max(length, len(jsondoc.Unquote([]byte(v))))
		}
	}
	return int64(length)
}

// place is what a path through a schema leads to.
type place struct {
	node *plan.Node
	key  bool // of node, which is a map, a key
}

// follow follows the path of an expression from n, the node of the variable
// that the path begins with. It reports false if the path leaves the schema.
func (s *sizes) follow(n *plan.Node, resource bool, path []string) (place, bool) {
	at := place{node: s.seen(n, resource)}
	for _, part := range path[1:] {
		if at.key {
			return place{}, false
		}
		var next *plan.Node
		switch part {
		case "@items", "@values":
			next = elements(at.node)
		case "@keys":
			if at.node.Type != plan.Object || elements(at.node) == nil {
				return place{}, false
			}
			at.key = true
			continue
		default:
			next = fieldCalled(at.node, part)
		}
		if next == nil {
			return place{}, false
		}
		at.node = s.seen(next, isEmbedded(next))
	}
	return at, true
}

// seen returns n as rules see it.
func (s *sizes) seen(n *plan.Node, resource bool) *plan.Node {
	if resource && n.Flags&plan.IntOrString == 0 {
		return s.views.view(n)
	}
	return n
}

// maxAt returns the API server's idea of the most elements of what is at p. Of
// keys of maps it has none.
func (s *sizes) maxAt(p place) int64 {
	if p.key {
		return 0
	}
	return s.max(p.node)
}

// elements returns the node of the items of a list or the values of a map, nil
// if n is neither or rules cannot see them.
func elements(n *plan.Node) *plan.Node {
	var e *plan.Node
	switch {
	case n.Flags&plan.IntOrString != 0:
	case n.Type == plan.Array:
		e = n.Items
	case n.Type == plan.Object:
		e = n.Additional
	}
	if !exposed(e) {
		return nil
	}
	return e
}

// fieldCalled returns the node of the field with the given escaped name, nil if
// there is none or rules cannot see it.
func fieldCalled(n *plan.Node, name string) *plan.Node {
	if n.Flags&plan.IntOrString != 0 || n.Type != plan.Object || n.Additional != nil {
		return nil
	}
	plain, ok := unescape(name)
	if !ok || escape(plain) != name {
		return nil
	}
	if f := n.Property(plain); exposed(f) {
		return f
	}
	return nil
}
