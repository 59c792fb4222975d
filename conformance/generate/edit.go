package generate

import (
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Edit returns what a client may have made of an old object: itself, or a version with a few changes. Some of the
// changes are taken from another object of the same schema. The old object is not modified.
func Edit(old, other []byte, seed uint64) []byte {
	e := editor{dice: newDice(seed, 0x65646974)}
	if e.one(8) {
		return old
	}
	root, err := tree.Parse(old)
	if err != nil {
		return old
	}
	from, err := tree.Parse(other)
	if err != nil {
		from = tree.Obj()
	}
	for range 1 + e.n(3) {
		e.edit(root, from)
	}
	return root.Bytes()
}

type editor struct{ dice }

// edit walks to a random place and changes something there. from is what stands at that place in the other object.
func (e *editor) edit(n, from *tree.Node) {
	for depth := 0; ; depth++ {
		if n.Kind == tree.Scalar || len(n.Kids) == 0 {
			e.scalar(n, from)
			return
		}
		i := e.n(len(n.Kids))
		if depth == 0 && n.Kind == tree.Object {
			if at := n.Find("spec"); at >= 0 && !e.one(4) {
				i = at
			}
		}
		if depth > 0 && e.one(4) || depth > 12 {
			e.compound(n, from, i)
			return
		}
		var same *tree.Node
		if n.Kind == tree.Object {
			same = from.Get(tree.Unquote(n.Keys[i]))
		} else if from != nil && from.Kind == tree.Array && i < len(from.Kids) {
			same = from.Kids[i]
		}
		n, from = n.Kids[i], same
	}
}

// scalar changes a value a little, or takes the other object's.
func (e *editor) scalar(n, from *tree.Node) {
	if from != nil && e.one(2) {
		*n = *from.Clone()
		return
	}
	switch {
	case n.Kind != tree.Scalar:
		*n = *tree.Must([]string{`{"a":1}`, `["a"]`, `"x"`, `null`}[e.n(4)])
	case strings.HasPrefix(n.Raw, `"`):
		n.Raw = n.Raw[:len(n.Raw)-1] + []string{"x", "-", "1", ""}[e.n(4)] + `"`
		if e.one(5) {
			n.Raw = []string{`""`, `"a"`, "1", "null"}[e.n(4)]
		}
	case n.Raw == "true":
		n.Raw = "false"
	case n.Raw == "false":
		n.Raw = "true"
	case n.Raw == "null":
		n.Raw = []string{`"x"`, "1", "{}", "[]"}[e.n(4)]
	default:
		if i, err := strconv.ParseInt(n.Raw, 10, 64); err == nil && i < 1<<60 && i > -1<<60 {
			n.Raw = strconv.FormatInt(i+int64(e.n(5))-2, 10)
			return
		}
		n.Raw = []string{"0", "1.5", "-1"}[e.n(3)]
	}
}

// compound changes the members of an object or the items of an array.
func (e *editor) compound(n, from *tree.Node, i int) {
	switch e.n(8) {
	case 0, 1:
		n.Cut(i)
	case 2: // in another order
		j := e.n(len(n.Kids))
		n.Kids[i], n.Kids[j] = n.Kids[j], n.Kids[i]
	case 3: // once more
		if n.Kind == tree.Array {
			n.Kids = append(n.Kids, n.Kids[i].Clone())
		} else {
			n.Keys[i] = tree.Quote(tree.Unquote(n.Keys[i]) + "x")
		}
	case 4, 5: // what the other object has besides
		if from == nil || from.Kind != n.Kind || len(from.Kids) == 0 {
			n.Cut(i)
			return
		}
		j := e.n(len(from.Kids))
		if n.Kind == tree.Object {
			n.Set(tree.Unquote(from.Keys[j]), from.Kids[j].Clone())
		} else {
			n.Kids = append(n.Kids, from.Kids[j].Clone())
		}
	case 6:
		n.Kids[i] = tree.Lit("null")
	default:
		if from != nil {
			*n = *from.Clone()
		}
	}
}
