package conversion

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// direction converts objects of one version to the other.
type direction struct {
	source, target string // versions
	root           *context
	notes          notes
	back           *direction
	apiVersion     string // of the target, as JSON
}

// context is what is converted by itself: the object, an item of a list, or a value of a map. Within it, values are
// found by names, and are kept in slots while it is converted.
type context struct {
	size   int // slots
	cells  int // values of groups
	read   member
	write  *output
	groups []groupStep
	keys   []keyPair // of items of a list of type map
	// quiet says that there is nothing of it that the target cannot hold.
	quiet bool
}

type keyPair struct {
	slot int32  // in the source
	name string // in the target
	own  string // in the source
}

// groupStep is a group in one direction.
type groupStep struct {
	in       []int32 // slots
	cells    int     // where the values are: those of the source, then those of the target
	outs     int
	inputs   []plan.Kinds
	outputs  []plan.Kinds
	forth    transform
	back     transform
	name     string // of the source's fields
	target   string // of the target's fields
	constant bool
	anchor   int32 // slot of the nearest object with a mate, for constants
	// Slots of the nearest objects with a mate that hold the fields: that of the source, and the mate of the target's.
	holder, targetHolder int32
}

// member is what is read of a value of the source version.
type member struct {
	name    string
	key     string // as JSON, with the colon
	kind    kind
	fate    fate
	slot    int32
	names   *plan.Props
	members []member // by rank in names
	unknown fate     // of members that the schema does not specify: carried, preserved or lost
	saves   bool     // it, or something below it, may have to be saved
	shared  bool     // it is an object with a mate
	moved   bool     // its mate is not in the mate of its parent
}

// output is what is written of a value of the target version.
type output struct {
	name     string
	key      string
	kind     outputKind
	slot     int32   // of the source value
	cell     int     // of a group
	inputs   []int32 // slots of what it is calculated from; none for a constant
	kinds    plan.Kinds
	children []*output
	names    *plan.Props
	known    *plan.Props // of the source, if unknown members are carried
	each     *context
	unknown  fate // of members that the schema does not specify: carried from the source, preserved, or lost
	restores bool // it, or something below it, may have been saved
	constant bool
	always   bool    // it is an item or a value of a map
	moved    bool    // converted back, it is not in the mate of its parent
	back     *output // of the mate in the other direction
}

type outputKind uint8

const (
	copied outputKind = iota
	restored
	calculated
	paired    // an object with a mate
	created   // an object without one
	keyedList // a list whose items have keys
	plainList // a list whose items have none
	values    // a map
	toMap     // a map made of a list
	toList    // a list made of a map
	keyName   // the key of the map in an item
	ownVersion
	ownMetadata
)

// headerKinds are how the members are written that every object has.
var headerKinds = map[string]outputKind{"apiVersion": ownVersion, "kind": copied, "metadata": ownMetadata}

// lowering makes a direction of a pairing.
type lowering struct {
	pairing *pairing
	from    int // the side that is the source
	context *context
	groups  map[*field][]*group // by the context of the source
	outputs map[*field]*output
}

func (p *pairing) lower(from int) (*direction, map[*field]*output) {
	l := &lowering{pairing: p, from: from, groups: map[*field][]*group{}, outputs: map[*field]*output{}}
	for _, g := range p.groups {
		c := g.context(from)
		if c == nil {
			if c = g.context(1 - from); c.parent != nil {
				c = c.partner
			} else {
				c = p.sides[from].root
			}
		}
		l.groups[c] = append(l.groups[c], g)
	}
	s, t := p.sides[from], p.sides[1-from]
	d := &direction{source: s.version, target: t.version}
	d.root = l.newContext(s.root, t.root, &d.notes)
	return d, l.outputs
}

// newContext lowers what is below s and t. Notes are those of the root.
func (l *lowering) newContext(s, t *field, n *notes) *context {
	outer := l.context
	defer func() { l.context = outer }()
	c := &context{}
	l.context = c
	c.read = l.member(s)
	if n != nil {
		l.readNotes(n)
	}
	for _, g := range l.groups[s] {
		l.group(g)
	}
	c.write = l.output(t)
	c.write.always = true
	if n != nil {
		l.writeNotes(n)
	}
	if keys := s.parent; keys != nil && keys.kind == list {
		c.keys = keyPairs(keys)
	}
	c.quiet = len(c.groups) == 0 && (c.read.kind == leaf || c.read.kind == object && c.read.unknown != preserved &&
		!slices.ContainsFunc(c.read.members, func(m member) bool { return m.saves }))
	return c
}

// keyPairs returns the keys of the items of a list and of its mate; none if the keys do not distinguish the items.
func keyPairs(s *field) []keyPair {
	t := s.mate
	if t == nil || t.kind != list {
		return nil
	}
	own, its := s.listKeys(), t.listKeys()
	if len(own) == 0 || len(own) != len(its) {
		return nil
	}
	var pairs []keyPair
	for _, name := range own {
		f := s.item.child(name)
		if f == nil || f.fate != carried || !f.same || f.mate.parent != t.item || !slices.Contains(its, f.mate.name) {
			return nil
		}
		pairs = append(pairs, keyPair{slot: f.slot, name: f.mate.name, own: name})
	}
	return pairs
}

func (l *lowering) slot() int32 {
	l.context.size++
	return int32(l.context.size - 1)
}

func quoted(name string) string { return string(append(jsondoc.AppendString(nil, name), ':')) }

func (l *lowering) member(f *field) member {
	f.slot = l.slot()
	m := member{name: f.name, key: quoted(f.name), fate: f.fate, slot: f.slot}
	m.moved = f.moved()
	m.saves = f.fate == preserved
	if f.same || f.fate == header || f.fate == preserved || f.fate == lost || f.fate == grouped || f.fate == listKey {
		return m
	}
	m.kind = f.kind
	switch f.kind {
	case object:
		m.shared = f.mate != nil
		m.unknown = lost
		if f.unknown {
			m.unknown, m.saves = preserved, true
			if m.shared && f.mate.unknown {
				m.unknown, m.saves = carried, false
			}
		}
		for _, c := range f.children {
			m.members = append(m.members, l.member(c))
		}
		m.names = namesOf(f)
		m.saves = true // its presence
	case list, mapping:
		m.saves = true // known when it is written
	}
	return m
}

// moved reports whether the other version has the value in another place than in the mate of its parent.
func (f *field) moved() bool {
	switch f.fate {
	case grouped:
		return !f.group.constant
	case listKey:
		return true
	case carried:
		return f.parent != nil && f.mate.parent != f.parent.mate
	}
	return false
}

// namesOf returns the names of the fields of an object. The rank of a name is its place in f.children, which are
// sorted.
func namesOf(f *field) *plan.Props {
	list := make([]plan.Prop, len(f.children))
	for i, c := range f.children {
		list[i].Name = c.name
	}
	return plan.NewProps(list)
}

func (l *lowering) output(f *field) *output {
	o := &output{name: f.name, key: quoted(f.name), slot: -1, kinds: f.kinds(), moved: f.moved()}
	switch {
	case f.fate == header:
		o.kind, o.slot = headerKinds[f.name], l.pairing.sides[l.from].root.child(f.name).slot
	case f.fate == preserved:
		o.kind, o.restores = restored, true
	case f.fate == lost:
		o.kind = restored // never saved, so never there
	case f.fate == listKey:
		o.kind = keyName
	case f.fate == grouped:
		o.kind, o.restores = calculated, true
		o.cell, o.constant, o.inputs = l.cell(f), f.group.constant, slotsOf(f.group.fields[l.from])
	case f.same:
		o.kind, o.slot = copied, f.mate.slot
		o.restores = true
	case f.kind == object:
		o.kind = created
		if f.mate != nil {
			o.kind, o.slot = paired, f.mate.slot
		}
		l.objectOutput(f, o)
	default:
		o.slot = f.mate.slot
		o.restores = true
		l.listOutput(f, o)
		l.outputs[f] = o
	}
	return o
}

func slotsOf(fields []*field) []int32 {
	list := make([]int32, len(fields))
	for i, f := range fields {
		list[i] = f.slot
	}
	return list
}

func (l *lowering) objectOutput(f *field, o *output) {
	o.unknown = lost
	if f.unknown {
		o.unknown = preserved
		if f.mate != nil && f.mate.unknown {
			o.unknown, o.known = carried, namesOf(f.mate)
		}
	}
	for _, c := range f.children {
		o.children = append(o.children, l.output(c))
	}
	o.names = namesOf(f)
	// The presence of the object itself may have been saved.
	o.restores = true
}

func (l *lowering) listOutput(f *field, o *output) {
	switch {
	case f.keyed != nil && f.kind == mapping:
		o.kind = toMap
	case f.keyed != nil:
		o.kind = toList
	case f.kind == mapping:
		o.kind = values
	default:
		o.kind = plainList
	}
	o.each = l.newContext(f.mate.item, f.item, nil)
	switch {
	case f.keyed != nil:
		o.each.keys = []keyPair{{slot: f.keyed.key.slot, name: f.keyed.key.name, own: f.keyed.key.name}}
	case o.kind == plainList && len(o.each.keys) > 0:
		o.kind = keyedList
	}
}

// group lowers a group of the context.
func (l *lowering) group(g *group) {
	to := 1 - l.from
	s := groupStep{forth: g.to[to], back: g.to[l.from], name: g.name(l.from), target: g.name(to), constant: g.constant, anchor: -1, holder: -1, targetHolder: -1, cells: l.context.cells}
	if s.forth == nil {
		s.forth = nothing{}
	}
	if s.back == nil {
		s.back = nothing{}
	}
	for _, f := range g.fields[l.from] {
		s.in = append(s.in, f.slot)
		s.inputs = append(s.inputs, f.kinds())
		if g.constant {
			for up := f.parent; up != nil; up = up.parent {
				if up.mate != nil || up.parent == nil {
					s.anchor = up.slot
					break
				}
			}
		}
	}
	for _, f := range g.fields[to] {
		s.outputs = append(s.outputs, f.kinds())
	}
	if h := g.holder(l.from); h != nil {
		s.holder = h.slot
	}
	if h := g.holder(to); h != nil {
		s.targetHolder = h.mate.slot
	}
	s.outs = len(g.fields[to])
	l.context.cells += len(s.in) + s.outs
	l.context.groups = append(l.context.groups, s)
}

// cell returns where the value of a field of a group is.
func (l *lowering) cell(f *field) int {
	name := f.group.name(1 - l.from)
	for i := range l.context.groups {
		if s := &l.context.groups[i]; s.target == name && s.outs > 0 {
			return s.cells + len(s.in) + f.index
		}
	}
	return -1
}

// notes are the annotations and labels that rules name, and the annotation with what is saved.
type notes struct {
	payload int32  // slot of the annotation
	read    []note // sorted: what does not stay in place
	write   []note
}

type note struct {
	in, name string
	fate     fate
	slot     int32 // of the source
	cell     int   // of a group
	inputs   []int32
}

func (l *lowering) readNotes(n *notes) {
	n.payload = l.slot()
	for _, f := range l.pairing.sides[l.from].notes {
		f.slot = l.slot()
		n.read = append(n.read, note{in: f.in, name: f.name, fate: f.fate, slot: f.slot})
	}
	n.read = append(n.read, note{in: "annotations", name: Preserved, slot: n.payload})
	sortNotes(n.read)
}

func (l *lowering) writeNotes(n *notes) {
	for _, f := range l.pairing.sides[1-l.from].notes {
		w := note{in: f.in, name: f.name, fate: f.fate, slot: -1, cell: -1}
		switch f.fate {
		case carried:
			w.slot = f.mate.slot
		case grouped:
			w.cell, w.inputs = l.cell(f), slotsOf(f.group.fields[l.from])
		}
		n.write = append(n.write, w)
	}
	sortNotes(n.write)
}

func sortNotes(list []note) {
	slices.SortFunc(list, func(a, b note) int { return strings.Compare(a.in+"\x00"+a.name, b.in+"\x00"+b.name) })
}
