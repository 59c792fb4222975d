package exec

import (
	"sync"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// checker answers whether values are valid, and nothing else: it stops at the
// first violation, keeps no path and allocates nothing. What is wrong, and in
// which words, is found out by the explainer, for objects that deserve it.
type checker struct {
	d *jsondoc.Doc
	// typed is set if normalization has found every value to be of its
	// schema's type, so that whatever is restricted in no other way can be
	// skipped.
	typed bool
	text  []byte // scratch: decoded strings
	lists uniqueness
}

var checkers = sync.Pool{New: func() any { return new(checker) }}

func newChecker(d *jsondoc.Doc, typed bool) *checker {
	c := checkers.Get().(*checker)
	c.d, c.typed = d, typed
	return c
}

func (c *checker) release() {
	c.d = nil
	if cap(c.text) > maxPooledBuffer {
		c.text = nil
	}
	c.lists.trim()
	checkers.Put(c)
}

// value reports whether v satisfies n.
func (c *checker) value(v jsondoc.Value, n *plan.Node) bool {
	kind := c.d.Kind(v)
	if !n.Accepts.Has(kind) {
		return false
	}
	switch kind {
	case jsondoc.Object:
		return c.object(v, n)
	case jsondoc.Array:
		return c.array(v, n)
	case jsondoc.String:
		return len(n.Asserts) == 0 || c.string(v, n)
	case jsondoc.Number:
		if n.Flags&plan.Whole == 0 && len(n.Asserts) == 0 {
			return true
		}
		if !numberValid(c.d, v, n) {
			return false
		}
	}
	return len(n.Asserts) == 0 || c.common(v, n)
}

// skips reports whether values of n need no look.
func (c *checker) skips(n *plan.Node) bool { return c.typed && n.Flags&plan.AssertsBelow == 0 }

func (c *checker) string(v jsondoc.Value, n *plan.Node) bool {
	var text []byte
	if c.d.Plain(v) {
		raw := c.d.Raw(v)
		text = raw[1 : len(raw)-1]
	} else {
		c.text = c.d.AppendText(c.text[:0], v)
		text = c.text
	}
	logical := false
	for i := range n.Asserts {
		ok := true
		switch a := &n.Asserts[i]; a.Op {
		case plan.MaxLength:
			ok = len(text) <= int(a.Num) && int64(a.Num) >= 0 || int64(utf8.RuneCount(text)) <= int64(a.Num)
		case plan.MinLength:
			ok = int64(utf8.RuneCount(text)) >= int64(a.Num)
		case plan.Pattern:
			ok = a.Match != nil && a.Match.Match(text)
		case plan.Format:
			ok = a.Form == 0 || a.Form.Match(text)
		case plan.Enum:
			ok = c.enumHasText(v, text, a)
		case plan.AllOf, plan.AnyOf, plan.OneOf, plan.Not:
			logical = true
		}
		if !ok {
			return false
		}
	}
	return !logical || c.logical(v, n)
}

func (c *checker) enumHasText(v jsondoc.Value, text []byte, a *plan.Assert) bool {
	if !a.Mixed {
		return a.Names.Lookup(text) >= 0
	}
	if c.d.IsCanonical(v) {
		return a.Names.Lookup(c.d.Raw(v)) >= 0
	}
	return a.Names.Lookup(c.d.AppendCanonical(nil, v)) >= 0
}

// common checks what applies to values of every kind but strings, for which
// string does it.
func (c *checker) common(v jsondoc.Value, n *plan.Node) bool {
	logical := false
	for i := range n.Asserts {
		switch a := &n.Asserts[i]; a.Op {
		case plan.Enum:
			if !enumHas(c.d, v, a, wayOf(n), stored, &c.text) {
				return false
			}
		case plan.AllOf, plan.AnyOf, plan.OneOf, plan.Not:
			logical = true
		}
	}
	// Upstream looks at a null's type and enum only.
	return !logical || c.d.Kind(v) == jsondoc.Null || c.logical(v, n)
}

func (c *checker) logical(v jsondoc.Value, n *plan.Node) bool {
	for i := range n.Asserts {
		ok := true
		switch a := &n.Asserts[i]; a.Op {
		case plan.AllOf:
			for _, b := range a.Nodes {
				ok = ok && c.value(v, b)
			}
		case plan.AnyOf:
			ok = c.satisfied(v, a.Nodes, 1) > 0
		case plan.OneOf:
			ok = c.satisfied(v, a.Nodes, 2) == 1
		case plan.Not:
			ok = !c.value(v, a.Nodes[0])
		}
		if !ok {
			return false
		}
	}
	return true
}

// satisfied counts the branches that v satisfies, up to enough.
func (c *checker) satisfied(v jsondoc.Value, branches []*plan.Node, enough int) int {
	n := 0
	for _, b := range branches {
		if c.value(v, b) {
			if n++; n == enough {
				break
			}
		}
	}
	return n
}

func (c *checker) object(v jsondoc.Value, n *plan.Node) bool {
	var others *plan.Props
	if len(n.Asserts) > 0 {
		for i := range n.Asserts {
			switch a := &n.Asserts[i]; a.Op {
			case plan.MaxProperties:
				if int64(c.d.Len(v)) > int64(a.Num) {
					return false
				}
			case plan.MinProperties:
				if int64(c.d.Len(v)) < int64(a.Num) {
					return false
				}
			case plan.Required:
				others = a.Names
			}
		}
		if !c.common(v, n) {
			return false
		}
	}
	if n.Rare != nil && len(n.Rare.Unions) > 0 && !unionsValid(c.d, v, n) {
		return false
	}
	if n.Flags&plan.Embedded != 0 && !embeddedValid(c.d, v) {
		return false
	}
	return c.members(v, n, others)
}

// members checks the values of an object's members, and that those that must
// be there are; others are names that must be and are no properties.
func (c *checker) members(v jsondoc.Value, n *plan.Node, others *plan.Props) bool {
	missing, missingOthers := 0, others.Len()
	if n.Props != nil {
		missing = n.Props.Required
	}
	end := c.d.Next(v)
	for k := v + 1; k < end; k = c.d.Next(k + 1) {
		child := n.Additional
		key := c.d.Key(k)
		if rank := n.Props.Lookup(key); rank >= 0 {
			child = n.Props.At(rank).Node
			if missing > 0 && n.Props.IsRequired(rank) {
				missing--
			}
		} else {
			if n.Flags&plan.AdditionalFalse != 0 {
				return false
			}
			if missingOthers > 0 && others.Lookup(key) >= 0 {
				missingOthers--
			}
		}
		if child != nil && !c.skips(child) && !c.value(k+1, child) {
			return false
		}
	}
	return missing == 0 && missingOthers == 0
}

func (c *checker) array(v jsondoc.Value, n *plan.Node) bool {
	if len(n.Asserts) > 0 {
		for i := range n.Asserts {
			switch a := &n.Asserts[i]; a.Op {
			case plan.MaxItems:
				if int64(c.d.Len(v)) > int64(a.Num) {
					return false
				}
			case plan.MinItems:
				if int64(c.d.Len(v)) < int64(a.Num) {
					return false
				}
			}
		}
		if !c.common(v, n) {
			return false
		}
	}
	if n.Flags&(plan.ListSet|plan.ListMap) != 0 && !c.lists.unique(c.d, v, n) {
		return false
	}
	if n.Items == nil || c.skips(n.Items) {
		return true
	}
	end := c.d.Next(v)
	for i := v + 1; i < end; i = c.d.Next(i) {
		if !c.value(i, n.Items) {
			return false
		}
	}
	return true
}
