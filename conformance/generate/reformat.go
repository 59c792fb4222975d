package generate

import (
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Reformat writes an object so that it says the same in another form: members in another order, numbers and letters written
// in other ways, white space, and now and then a key twice.
func Reformat(object []byte, seed uint64) []byte {
	root, err := tree.Parse(object)
	if err != nil {
		return object
	}
	f := reformer{dice: newDice(seed, 0x7265666f726d)}
	f.write(root)
	return f.dst
}

type reformer struct {
	dice
	dst []byte
}

func (f *reformer) space() {
	for f.one(6) {
		f.dst = append(f.dst, " \t\r\n"[f.n(4)])
	}
}

func (f *reformer) write(n *tree.Node) {
	f.space()
	switch n.Kind {
	case tree.Scalar:
		f.scalar(n.Raw)
	case tree.Array:
		f.dst = append(f.dst, '[')
		for i, k := range n.Kids {
			if i > 0 {
				f.dst = append(f.dst, ',')
			}
			f.write(k)
		}
		f.space()
		f.dst = append(f.dst, ']')
	case tree.Object:
		f.members(n)
	}
	f.space()
}

func (f *reformer) members(n *tree.Node) {
	f.dst = append(f.dst, '{')
	from := 0
	if len(n.Kids) > 0 {
		from = f.n(len(n.Kids))
	}
	for i := range n.Kids {
		at := (from + i) % len(n.Kids)
		if i > 0 {
			f.dst = append(f.dst, ',')
		}
		if f.one(60) { // the last one counts
			f.space()
			f.dst = append(f.dst, n.Keys[at]...)
			f.dst = append(f.dst, `:{"other":[1.50]},`...)
		}
		f.space()
		f.scalar(n.Keys[at])
		f.dst = append(f.dst, ':')
		f.write(n.Kids[at])
	}
	f.space()
	f.dst = append(f.dst, '}')
}

// scalar writes a scalar, sometimes in another form.
func (f *reformer) scalar(raw string) {
	switch {
	case !f.one(4):
	case strings.HasPrefix(raw, `"`) && len(raw) > 2 && raw[1] != '\\' && raw[1] < 0x80:
		code := strconv.FormatUint(uint64(raw[1]), 16)
		raw = `"\u` + "0000"[len(code):] + code + raw[2:]
	case strings.IndexFunc(raw, func(c rune) bool { return c < '0' || c > '9' }) < 0:
		raw += []string{".0", "e0", ".00e+0", "E-0"}[f.n(4)]
	}
	f.dst = append(f.dst, raw...)
}
