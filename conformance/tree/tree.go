package tree

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kind tells the three shapes apart.
type Kind uint8

const (
	Scalar Kind = iota
	Array
	Object
)

// A Node is a JSON value. Keys are raw, with their quotes, parallel to Kids; an array has no keys.
type Node struct {
	Kind Kind
	Raw  string
	Keys []string
	Kids []*Node
}

// Lit is a scalar given as JSON text.
func Lit(raw string) *Node { return &Node{Raw: raw} }

// Str is a string.
func Str(s string) *Node { return &Node{Raw: Quote(s)} }

// Arr is an array.
func Arr(kids ...*Node) *Node { return &Node{Kind: Array, Kids: kids} }

// Obj is an empty object.
func Obj() *Node { return &Node{Kind: Object} }

// Must parses trusted JSON text.
func Must(text string) *Node {
	n, err := Parse([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("%v in %s", err, text))
	}
	return n
}

// Quote renders a Go string as a JSON string.
func Quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Unquote is the text of a raw JSON string; a string that cannot be read stands for itself.
func Unquote(raw string) string {
	if len(raw) >= 2 && strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if json.Unmarshal([]byte(raw), &s) != nil {
		return raw
	}
	return s
}

// Find is the index of the last member with that name, or -1.
func (n *Node) Find(name string) int {
	if n == nil || n.Kind != Object {
		return -1
	}
	for i := len(n.Keys) - 1; i >= 0; i-- {
		if Unquote(n.Keys[i]) == name {
			return i
		}
	}
	return -1
}

// Get is the last member with that name, or nil.
func (n *Node) Get(name string) *Node {
	if i := n.Find(name); i >= 0 {
		return n.Kids[i]
	}
	return nil
}

// Text is a string node's text, or "".
func (n *Node) Text() string {
	if n == nil || n.Kind != Scalar || !strings.HasPrefix(n.Raw, `"`) {
		return ""
	}
	return Unquote(n.Raw)
}

// Literal is a scalar as it is written, or "".
func (n *Node) Literal() string {
	if n == nil {
		return ""
	}
	return n.Raw
}

// Is reports whether the node is this literal.
func (n *Node) Is(raw string) bool { return n != nil && n.Kind == Scalar && n.Raw == raw }

// Set replaces a member or appends it.
func (n *Node) Set(name string, v *Node) {
	if i := n.Find(name); i >= 0 {
		n.Kids[i] = v
		return
	}
	n.Add(name, v)
}

// Have returns a member of a kind. One that is missing, or of another kind, becomes an empty one.
func (n *Node) Have(name string, kind Kind) *Node {
	v := n.Get(name)
	if v == nil || v.Kind != kind {
		v = &Node{Kind: kind}
		n.Set(name, v)
	}
	return v
}

// Add appends a member, even if there is one of that name.
func (n *Node) Add(name string, v *Node) {
	n.Keys = append(n.Keys, Quote(name))
	n.Kids = append(n.Kids, v)
}

// Del removes a member if it is there.
func (n *Node) Del(name string) {
	if i := n.Find(name); i >= 0 {
		n.Cut(i)
	}
}

// Cut removes the i-th kid.
func (n *Node) Cut(i int) {
	n.Kids = append(n.Kids[:i:i], n.Kids[i+1:]...)
	if n.Kind == Object {
		n.Keys = append(n.Keys[:i:i], n.Keys[i+1:]...)
	}
}

// Clone is a deep copy.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := &Node{Kind: n.Kind, Raw: n.Raw, Keys: append([]string(nil), n.Keys...)}
	if len(n.Kids) > 0 {
		c.Kids = make([]*Node, len(n.Kids))
		for i, k := range n.Kids {
			c.Kids[i] = k.Clone()
		}
	}
	return c
}

// Size is the number of nodes.
func (n *Node) Size() int {
	size := 1
	for _, k := range n.Kids {
		size += k.Size()
	}
	return size
}

// Append writes the node compactly.
func (n *Node) Append(dst []byte) []byte {
	switch n.Kind {
	case Scalar:
		return append(dst, n.Raw...)
	case Array:
		dst = append(dst, '[')
		for i, k := range n.Kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = k.Append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, k := range n.Kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, n.Keys[i]...)
		dst = append(dst, ':')
		dst = k.Append(dst)
	}
	return append(dst, '}')
}

// Bytes is the node as JSON.
func (n *Node) Bytes() []byte { return n.Append(nil) }
