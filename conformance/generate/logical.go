package generate

import "github.com/espalier-dev/espalier/conformance/tree"

// Limits of resolving allOf, anyOf, oneOf and not: schemas of this many JSON nodes are copied, this many times.
const (
	maxResolved     = 400
	maxAlternatives = 4
)

// resolve returns ways to satisfy a schema's allOf, anyOf, oneOf and not, each as a schema without them: the schema merged with all of
// allOf, one of anyOf and one of oneOf, without the properties that not forbids. It is right for the
// combinations that people write and a guess for others.
func resolve(s *tree.Node) []*tree.Node {
	if s.Find("allOf") < 0 && s.Find("anyOf") < 0 && s.Find("oneOf") < 0 && s.Find("not") < 0 || s.Size() > maxResolved {
		return nil
	}
	ways := []*tree.Node{s.Clone()}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "not"} {
		branches := s.Get(keyword)
		for _, way := range ways {
			way.Del(keyword)
		}
		switch {
		case branches == nil:
		case keyword == "not":
			for _, way := range ways {
				forbid(way, branches)
			}
		case branches.Kind != tree.Array || len(branches.Kids) == 0:
		case keyword == "allOf":
			for _, way := range ways {
				for _, branch := range branches.Kids {
					demand(way, branch)
				}
			}
		default:
			ways = multiply(ways, branches.Kids)
		}
	}
	return ways
}

// multiply returns every way with every branch, as many as are allowed.
func multiply(ways, branches []*tree.Node) []*tree.Node {
	var more []*tree.Node
	for _, way := range ways {
		for _, branch := range branches {
			if len(more) == maxAlternatives {
				return more
			}
			next := way.Clone()
			demand(next, branch)
			more = append(more, next)
		}
	}
	return more
}

// demand adds what branch demands to a schema.
func demand(s, branch *tree.Node) {
	if branch == nil || branch.Kind != tree.Object || s.Kind != tree.Object {
		return
	}
	for i, raw := range branch.Keys {
		keyword, value := tree.Unquote(raw), branch.Kids[i]
		switch keyword {
		case "properties":
			for j, name := range value.Keys {
				into(s.Have("properties", tree.Object), tree.Unquote(name), value.Kids[j])
			}
		case "items":
			if items := s.Get("items"); items != nil {
				demand(items, value)
			}
		case "required":
			list := s.Have("required", tree.Array)
			list.Kids = append(list.Kids, value.Kids...)
		case "not":
			forbid(s, value)
		case "allOf", "anyOf", "oneOf":
			if s.Find(keyword) < 0 {
				s.Set(keyword, value.Clone())
			}
		default:
			s.Set(keyword, value.Clone())
		}
	}
}

// into adds demands to a property, which it makes if it is missing.
func into(props *tree.Node, name string, branch *tree.Node) {
	if at := props.Get(name); at != nil {
		demand(at, branch)
		return
	}
	props.Add(name, branch.Clone())
}

// forbid removes the properties that a negated schema must not require.
func forbid(s, negated *tree.Node) {
	if negated == nil || negated.Kind != tree.Object {
		return
	}
	if list := negated.Get("required"); list != nil && list.Kind == tree.Array && len(list.Kids) > 0 {
		if props := s.Get("properties"); props != nil {
			props.Del(list.Kids[0].Text())
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := negated.Get(keyword); list != nil && list.Kind == tree.Array {
			for _, branch := range list.Kids {
				forbid(s, branch)
			}
		}
	}
}
