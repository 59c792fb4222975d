package splice

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// claim is a place that an edit changes, or one above it.
type claim struct {
	changed  bool
	appended bool // by items that come last, whose number does not matter
	below    map[string]*claim
	// If it is an array, the first item that an edit has moved.
	shifted bool
	first   int
}

// independent returns how many of the edits can be made at once: none is inside
// a value that another one changes, and none is moved by another one.
func independent(root *spot, edits []Edit) int {
	var claims claim
	for i, e := range edits {
		switch e.Op {
		case Move:
			if !claims.take(root, e.From, Remove) {
				return max(i, 1)
			}
		case Copy:
			if !claims.free(root, e.From, Copy) {
				return max(i, 1)
			}
		}
		op := e.Op
		if op == Move || op == Copy {
			op = Insert
		}
		if !claims.take(root, e.Pointer, op) {
			return max(i, 1)
		}
	}
	return len(edits)
}

// free reports whether no claim is at a place, above it or below it.
func (c *claim) free(s *spot, pointer string, op Op) bool {
	for _, token := range parents(pointer) {
		if c == nil {
			return true
		}
		if c.changed || sequence(s) && c.moves(token, op) {
			return false
		}
		c, s = c.below[token], follow(s, token)
	}
	return c == nil || c.appended && op == Insert
}

// moves reports whether an item of an array is no longer where it was.
func (c *claim) moves(token string, op Op) bool {
	i, err := strconv.Atoi(token)
	if err != nil {
		return false
	}
	last := c.below["-"]
	return c.shifted && i >= c.first || op == Insert && last != nil && last.appended
}

// take claims a place for an edit, if it is free.
func (c *claim) take(s *spot, pointer string, op Op) bool {
	if !c.free(s, pointer, op) {
		return false
	}
	parent, last := c, ""
	for _, token := range parents(pointer) {
		if c.below == nil {
			c.below = make(map[string]*claim)
		}
		next := c.below[token]
		if next == nil {
			next = &claim{}
			c.below[token] = next
		}
		parent, last, c = c, token, next
	}
	c.changed = true
	c.appended = op == Insert && last == "-"
	if i, err := strconv.Atoi(last); err == nil && op != Set {
		parent.shifted, parent.first = true, i
	}
	return true
}

// sequence reports whether a value is or may be an array.
func sequence(s *spot) bool { return s == nil || s.node.Kind == yaml.SequenceNode }

// follow returns the child of a value, nil if it has none of this name.
func follow(s *spot, token string) *spot {
	if s == nil {
		return nil
	}
	if i, err := child(s, token); err == nil && i >= 0 {
		return s.kids[i]
	}
	return nil
}
