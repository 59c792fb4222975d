package conversion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/spelling"
)

// mates pairs what has the same path and is alike, below a pair.
func (p *pairing) mates(a, b *field) {
	if a.kind == object && b.kind == object {
		p.adopt(a, b)
		p.adopt(b, a)
		for _, f := range a.children {
			if g := b.child(f.name); g != nil && f.fate == open && g.fate == open && !f.explicit && !g.explicit && alike(f, g) {
				p.pair(f, g)
			}
		}
		for _, f := range a.children {
			if f.mate != nil {
				p.mates(f, f.mate)
			} else {
				p.explicitBelow(f)
			}
		}
		return
	}
	if a.keyed != nil {
		if a.item.mate != nil {
			p.mates(a.item, a.item.mate)
		} else {
			p.explicitBelow(a.item)
		}
		return
	}
	if a.item != nil && b.item != nil {
		if a.item.fate == open && b.item.fate == open && alike(a.item, b.item) {
			p.pair(a.item, b.item)
		}
		a.item.partner, b.item.partner = b.item, a.item
		if a.item.mate == b.item {
			p.mates(a.item, b.item)
		}
	}
}

// adopt gives an object that keeps unknown members the fields of its mate: it can hold them.
func (p *pairing) adopt(a, b *field) {
	if !b.unknown {
		return
	}
	side := p.sides[0]
	for x := b; ; x = x.parent {
		if x.parent == nil {
			if x == p.sides[1].root {
				side = p.sides[1]
			}
			break
		}
	}
	for _, f := range a.children {
		if !decided(f) && !f.explicit && b.child(f.name) == nil {
			i, _ := slices.BinarySearchFunc(b.children, f.name, func(c *field, name string) int { return strings.Compare(c.name, name) })
			g := side.field(f.name, nil, b)
			b.children = slices.Insert(b.children, i, g)
			// An unknown member may have any value: only what the other schema specifies is carried there.
			own := 0
			if side == p.sides[1] {
				own = 1
			}
			x := &group{}
			x.fields[own], x.fields[1-own] = []*field{g}, []*field{f}
			x.to[own], x.to[1-own] = identity{}, conforming{f.schema}
			p.add(x)
		}
	}
}

// explicitBelow pairs what is below fields that rules have moved out of an object without a mate.
func (p *pairing) explicitBelow(f *field) {
	for _, c := range f.children {
		if c.mate != nil {
			p.mates(c, c.mate)
		} else {
			p.explicitBelow(c)
		}
	}
}

// inContext checks that rules do not reach from one list item, map value or object into another.
func (p *pairing) inContext() {
	check := func(a, b *field) {
		x, y := a.context(), b.context()
		if x.partner != y && (x.parent != nil || y.parent != nil) {
			p.report("%s and %s must be in items of the same list or map: convert the lists that hold them, too", a.path(), b.path())
		}
	}
	each(p.sides[0].root, func(f *field) {
		if f.explicit && f.mate != nil {
			check(f, f.mate)
		}
	})
	for _, g := range p.groups {
		if len(g.fields[0]) > 0 && len(g.fields[1]) > 0 {
			check(g.fields[0][0], g.fields[1][0])
		} else if f := append(slices.Clone(g.fields[0]), g.fields[1]...)[0]; f.context().partner == nil && f.context().parent != nil {
			p.report("%s is in a list or map that the other version has not", f.path())
		}
	}
}

// nested checks that no rule is about a part of a field that another rule converts, preserves or drops as a whole: the
// whole is copied or calculated without a look at its parts, so that the part would have two fates or none.
func (p *pairing) nested() {
	for _, s := range p.sides {
		p.partsOf(s, s.root, nil)
	}
}

func (p *pairing) partsOf(s *side, f, whole *field) {
	switch {
	case whole == nil && (f.fate == grouped || f.fate == preserved || f.fate == lost):
		whole = f
	case whole != nil && f.fate != open && (f.fate != whole.fate || f.fate == grouped):
		p.report("%s of %s is a part of %s, which another rule is about as a whole: convert its parts one by one, or only the whole", f.path(), s.version, whole.path())
		return
	}
	for _, c := range f.children {
		p.partsOf(s, c, whole)
	}
	if f.item != nil {
		p.partsOf(s, f.item, whole)
	}
}

func each(f *field, visit func(*field)) {
	visit(f)
	for _, c := range f.children {
		each(c, visit)
	}
	if f.item != nil {
		each(f.item, visit)
	}
}

// decided reports whether the field or one below it has a fate.
func decided(f *field) bool {
	if f.fate != open {
		return true
	}
	return slices.ContainsFunc(f.children, decided) || f.item != nil && decided(f.item)
}

// missing is a field without a fate.
type missing struct {
	side  int
	field *field
}

// account returns the fields that have no fate. With all it preserves them.
func (p *pairing) account(side int, f *field, all bool, found []missing) []missing {
	switch {
	case f.fate == open && f.kind == object && slices.ContainsFunc(f.children, decided):
		f.fate = split
		for _, c := range f.children {
			found = p.account(side, c, all, found)
		}
		if f.unknown && !all {
			found = append(found, missing{side, f})
		}
	case f.fate == open && all && !f.entry():
		f.fate = preserved
	case f.fate == open:
		return append(found, missing{side, f})
	case f.fate == carried || f.fate == split:
		for _, c := range f.children {
			found = p.account(side, c, all, found)
		}
		if f.item != nil {
			found = p.account(side, f.item, all, found)
		}
	}
	return found
}

// propose says which rule would account for a field.
func (p *pairing) propose(m missing, open []missing) string {
	version, other := p.sides[m.side].version, p.sides[1-m.side]
	if m.field.entry() {
		return fmt.Sprintf("preserve: {%s: [%s]}, or a rule for the whole of it", version, m.field.parent.path())
	}
	path := m.field.path()
	otherwise := fmt.Sprintf("preserve: {%s: [%s]}, or lost: {%s: [%s]}, or preserve: %s", version, path, version, path, everything)
	near := spelling.Nearest(m.field.name, func(yield func(string) bool) {
		for _, o := range open {
			if o.side != m.side && alike(o.field, m.field) && !yield(o.field.name) {
				return
			}
		}
	})
	for _, o := range open {
		if o.side == m.side || !alike(o.field, m.field) || o.field.name != m.field.name && o.field.name != near {
			continue
		}
		from, to := path, o.field.path()
		if m.side == 1 {
			from, to = to, from
		}
		return fmt.Sprintf("- move: {from: %s, to: %s}, if it is the same; otherwise %s", from, to, otherwise)
	}
	if twin := p.twin(m.field, other); twin != "" {
		return twin + "; otherwise " + otherwise
	}
	return otherwise
}

// twin proposes what converts a field whose path has another type in the other version.
func (p *pairing) twin(f *field, other *side) string {
	path := f.path()
	g, err := other.resolve(path)
	if err != nil || g.fate != open {
		return ""
	}
	from, to := f, g
	if other == p.sides[0] {
		from, to = g, f
	}
	switch {
	case coercion(from, to) != nil && coercion(to, from) != nil:
		return fmt.Sprintf("- move: {from: %s, to: %s}", path, path)
	case to.kind == list && identical(from, to.item):
		return fmt.Sprintf("- wrap: {from: %s, to: %s}", path, path)
	case from.kind == list && identical(to, from.item):
		return fmt.Sprintf("- unwrap: {from: %s, to: %s}", path, path)
	case to.kind == object && len(to.children) > 0 && from.kind == leaf:
		for _, c := range to.children {
			if alike(from, c) {
				return fmt.Sprintf("- move: {from: %s, to: %s}", path, c.path())
			}
		}
	}
	return fmt.Sprintf("- cel: {from: %s, to: %s, value: ..., back: ...}", path, path)
}

// settle computes which pairs are converted by copying their bytes.
func settle(f *field) bool {
	f.same = f.fate == carried && f.mate != nil && f.keyed == nil && (f.kind != object || f.unknown == f.mate.unknown) && len(f.children) == len(f.mate.children)
	for _, c := range f.children {
		ok := settle(c) && c.mate.name == c.name && c.mate.parent == f.mate
		f.same = f.same && ok
	}
	if f.item != nil {
		ok := settle(f.item) && f.mate != nil && f.item.mate == f.mate.item
		f.same = f.same && ok
	}
	return f.same
}

// keepNotes preserves annotations and labels of one version whose names rules use in the other: there they hold
// something else.
func (p *pairing) keepNotes() {
	for side := range p.sides {
		for _, f := range p.sides[1-side].notes {
			if n := p.sides[side].note(f.in, f.name); n.fate == open {
				n.fate = preserved
			}
		}
	}
}
