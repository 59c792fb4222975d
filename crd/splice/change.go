package splice

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// changer turns edits into changes of the text.
type changer struct {
	doc     *document
	changes []splicing
	// What is to be taken out of collections and put into them, in the order
	// in which the collections were first met.
	order []*spot
	work  map[*spot]*restructuring
}

// splicing replaces a part of the text.
type splicing struct {
	start, end int
	depth      int // of an addition: where one collection ends, ones around it end as well
	with       []byte
}

// restructuring is what happens to the children of a collection.
type restructuring struct {
	removed map[int]bool
	moved   map[int]bool // those of the removed that take the comments above them along
	added   []addition
}

// addition is a new child, in front of the one with the index at.
type addition struct {
	at    int
	above []byte // comment lines above it
	shift int    // the column of these
	name  string // of a member
	value value
}

func (c *changer) replace(start, end int, with []byte) {
	c.changes = append(c.changes, splicing{start: start, end: end, with: with})
}

// sort puts the changes in order. It reports false if some overlap.
func (c *changer) sort() bool {
	slices.SortStableFunc(c.changes, func(a, b splicing) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(b.depth, a.depth))
	})
	at := 0
	for _, x := range c.changes {
		if x.start < at || x.end < x.start {
			return false
		}
		at = x.end
	}
	return true
}

func (c *changer) edit(e Edit) error {
	switch e.Op {
	case Set:
		return c.set(e)
	case Insert:
		v, err := parseValue(e.Value)
		if err != nil {
			return err
		}
		return c.insert(e.Pointer, e.Before, addition{value: v})
	case Remove:
		s, err := c.find(e.Pointer)
		if err != nil {
			return err
		}
		return c.remove(s)
	}
	return c.carry(e)
}

// find follows a pointer.
func (c *changer) find(pointer string) (*spot, error) {
	s := c.doc.root
	for at, token := range parents(pointer) {
		i, err := child(s, token)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			return nil, fmt.Errorf("%w: %s has no %q", errNotThere, at, token)
		}
		s = s.kids[i]
	}
	if s.node.Kind == yaml.AliasNode {
		return nil, aliasError(s)
	}
	return s, nil
}

// child returns the index of a child, or -1.
func child(s *spot, token string) (int, error) {
	switch s.node.Kind {
	case yaml.AliasNode:
		return 0, aliasError(s)
	case yaml.SequenceNode:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(s.kids) {
			return -1, nil
		}
		return i, nil
	case yaml.MappingNode:
		return member(s, token)
	}
	return -1, nil
}

// member returns the index of a member, or -1.
func member(s *spot, name string) (int, error) {
	if s.byName == nil {
		s.byName = make(map[string]int, len(s.kids))
		for i, k := range s.kids {
			if k.key.node.Tag == "!!merge" {
				s.merge = k.key
			}
			if _, twice := s.byName[k.key.node.Value]; twice {
				i = -1
			}
			s.byName[k.key.node.Value] = i
		}
	}
	if s.merge != nil {
		return 0, fmt.Errorf("line %d: replace the merge key << with its members first", s.merge.node.Line)
	}
	i, ok := s.byName[name]
	switch {
	case !ok:
		return -1, nil
	case i < 0:
		return 0, fmt.Errorf("line %d: duplicate key %q: remove one first", s.node.Line, name)
	}
	return i, nil
}

func aliasError(s *spot) error {
	return fmt.Errorf("line %d: replace the alias *%s with its value first", s.node.Line, s.node.Value)
}

// anchored returns an error if aliases may refer to a part of s.
func anchored(s *spot) error {
	if s.node.Anchor != "" {
		return fmt.Errorf("line %d: the anchor &%s is used elsewhere: replace its aliases with the value first", s.node.Line, s.node.Anchor)
	}
	for _, k := range s.kids {
		if err := anchored(k); err != nil {
			return err
		}
	}
	return nil
}

func (c *changer) set(e Edit) error {
	s, err := c.find(e.Pointer)
	if err != nil {
		return err
	}
	if s.parent == nil {
		return errRoot
	}
	if err := anchored(s); err != nil {
		return err
	}
	v, err := parseValue(e.Value)
	if err != nil {
		return err
	}
	return c.exchange(s, v)
}

// exchange replaces a value.
func (c *changer) exchange(s *spot, v value) error {
	d := c.doc
	if s.end < 0 {
		return errUnclear(s)
	}
	if s.flow {
		// In a block around it, a flow collection stays one.
		with, err := d.flowText(v, s.parent)
		if err != nil {
			return err
		}
		if s.start == s.end {
			with = append([]byte(" "), with...)
		}
		c.replace(s.start, s.end, with)
		return nil
	}
	if s.key == nil { // an item of a sequence in block style
		with, err := d.appendBlock(nil, v, s.column)
		if err != nil {
			return err
		}
		if s.start == s.end {
			with = append([]byte(" "), with...)
		}
		c.exchangeLines(s.start, s.end, d.commentBehindTag(s), with)
		return nil
	}
	colon, err := d.colon(s.key)
	if err != nil {
		return err
	}
	with, err := d.appendMember(nil, v, s.key.column)
	if err != nil {
		return err
	}
	// A comment behind the colon stays where it is.
	comment := d.commentBehindTag(s)
	if line := d.lineEnd(colon); s.start > line {
		comment = d.text[colon:line]
	}
	c.exchangeLines(colon, s.end, comment, with)
	return nil
}

// commentBehindTag returns the comment between a tag and its value below.
func (d *document) commentBehindTag(s *spot) []byte {
	at := d.skipProperties(s)
	if at == s.start || at >= s.end || d.text[at] != '#' {
		return nil
	}
	return slices.Concat([]byte(" "), d.text[at:d.lineEnd(at)])
}

// exchangeLines replaces a part of the text that ends with a value, and keeps
// the comments at the ends of its first and its last line.
func (c *changer) exchangeLines(start, end int, comment, with []byte) {
	n := firstBreak(with)
	if n < 0 {
		c.replace(start, end, slices.Concat(with, comment))
		return
	}
	stop := c.doc.lineEnd(end)
	c.replace(start, stop, slices.Concat(with[:n], comment, c.doc.text[end:stop], with[n:]))
}

func firstBreak(text []byte) int {
	for i := range text {
		if breakAt(text[i:]) > 0 {
			return i
		}
	}
	return -1
}

func errUnclear(s *spot) error {
	return fmt.Errorf("line %d: cannot tell where this value ends: write it in plain block style first", s.node.Line)
}

// colon returns the place after the colon of a key.
func (d *document) colon(key *spot) (int, error) {
	if key.end < 0 {
		return 0, errUnclear(key)
	}
	at := key.end
	for at < len(d.text) && (d.text[at] == ' ' || d.text[at] == '\t') {
		at++
	}
	if at >= len(d.text) || d.text[at] != ':' {
		return 0, fmt.Errorf("line %d: this form of a key cannot be edited: write it as key: value first", key.node.Line)
	}
	return at + 1, nil
}

// insert puts a new child into a collection.
func (c *changer) insert(pointer, before string, a addition) error {
	parent, token := cut(pointer)
	if pointer == "" {
		return errRoot
	}
	s, err := c.find(parent)
	if err != nil {
		return err
	}
	i, err := child(s, token)
	if err != nil {
		return err
	}
	a.at = len(s.kids)
	switch s.node.Kind {
	case yaml.MappingNode:
		if i >= 0 {
			return errThere
		}
		a.name = token
		if before != "" {
			if b, err := child(s, before); err != nil {
				return err
			} else if b >= 0 {
				a.at = b
			}
		}
	case yaml.SequenceNode:
		if i >= 0 {
			a.at = i
		} else if token != "-" && token != strconv.Itoa(len(s.kids)) {
			return errNotThere
		}
	default:
		return errNotThere
	}
	c.collection(s).added = append(c.collection(s).added, a)
	return nil
}

func (c *changer) remove(s *spot) error {
	if s.parent == nil {
		return errRoot
	}
	if err := anchored(s); err != nil {
		return err
	}
	c.collection(s.parent).removed[s.index] = true
	return nil
}

func (c *changer) collection(s *spot) *restructuring {
	if r := c.work[s]; r != nil {
		return r
	}
	if c.work == nil {
		c.work = make(map[*spot]*restructuring)
	}
	r := &restructuring{removed: map[int]bool{}, moved: map[int]bool{}}
	c.work[s] = r
	c.order = append(c.order, s)
	return r
}

// restructure makes the changes of collections.
func (c *changer) restructure() error {
	for _, s := range c.order {
		r := c.work[s]
		slices.SortStableFunc(r.added, func(a, b addition) int { return cmp.Compare(a.at, b.at) })
		var err error
		switch {
		case s.flow:
			err = c.restructureFlow(s, r)
		case len(r.removed) == len(s.kids) && len(r.added) == 0:
			empty := value{kind: '{'}
			if s.node.Kind == yaml.SequenceNode {
				empty.kind = '['
			}
			if s.parent == nil {
				return errRoot
			}
			err = c.exchange(s, empty)
		default:
			err = c.restructureBlock(s, r)
		}
		if errors.Is(err, errColumn) {
			err = fmt.Errorf("line %d: %w", s.node.Line, err) // others name their line
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// carry takes a member to another place, with the text that it is written in.
func (c *changer) carry(e Edit) error {
	s, err := c.find(e.From)
	if err != nil {
		return err
	}
	if s.key == nil {
		return errors.New("only members of objects can be moved")
	}
	fromParent, _ := cut(e.From)
	toParent, name := cut(e.Pointer)
	if e.Op == Move && fromParent == toParent {
		return c.rename(s, name)
	}
	if bytes.HasPrefix([]byte(e.Pointer+"/"), []byte(e.From+"/")) {
		return errors.New("a value cannot be moved into itself")
	}
	v, err := c.doc.written(s)
	if err != nil {
		return err
	}
	a := addition{value: v}
	if !s.parent.flow {
		line := c.doc.lineStart(s.key.start)
		a.shift = s.key.column
		a.above = c.doc.text[min(c.doc.commentsAbove(s.key.start, s.key.column), line):line]
	}
	if e.Op == Move {
		if err := c.remove(s); err != nil {
			return err
		}
		c.collection(s.parent).moved[s.index] = true
	} else if err := anchored(s); err != nil {
		return err
	}
	return c.insert(e.Pointer, e.Before, a)
}

// rename gives a member another key, in its place.
func (c *changer) rename(s *spot, name string) error {
	if i, err := child(s.parent, name); err != nil {
		return err
	} else if i >= 0 {
		return errThere
	}
	if s.key.end < 0 {
		return errUnclear(s.key)
	}
	with, err := c.doc.scalar(value{kind: '"', text: name})
	if err != nil {
		return err
	}
	if s.key.node.Style&yaml.DoubleQuotedStyle != 0 {
		with = quote(name)
	}
	c.replace(s.key.start, s.key.end, with)
	return nil
}
