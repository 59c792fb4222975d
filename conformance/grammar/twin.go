package grammar

import (
	"bytes"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Twin is a schema with the same numbers in other written forms, or nil if it has none. Compiled schemas share equal
// parts: if one took these for equal though they are not, the schema that is compiled first would answer for the other.
func Twin(schema []byte, seed uint64) []byte {
	root, err := tree.Parse(schema)
	if err != nil {
		return nil
	}
	d := NewDice(seed, 4)
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		if n.Kind == tree.Scalar && isNumber(n.Raw) {
			n.Raw = maker{d}.again(Value{Raw: n.Raw}).Raw
		}
		for _, k := range n.Kids {
			walk(k)
		}
	}
	walk(root)
	if twin := root.Bytes(); !bytes.Equal(twin, schema) {
		return twin
	}
	return nil
}
