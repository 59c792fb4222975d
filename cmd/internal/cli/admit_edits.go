package cli

import (
	"bytes"
	"strconv"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/splice"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// steps say which of a server's changes are wanted.
type steps struct {
	prune, fill bool
}

// alteration is one difference between an object as written and as stored.
type alteration struct {
	splice.Edit
	offset int    // in the source, of the key or value
	reason string //
}

// comparison finds the alterations that make one object of another: members
// that went, members that came, and values that are others. The result is the
// source with those that are wanted, in the source's order.
type comparison struct {
	source, stored *jsondoc.Doc
	steps          steps
	reasons        map[int]string // why the member whose key is at an offset went
	alterations    []alteration
	out            []byte
	path           []byte
	repeated       []int // keys in the source that have appeared before
}

// compare returns the JSON of the source after the wanted steps.
func compare(source, stored []byte, want steps, changes []espalier.Change) (*comparison, error) {
	c := &comparison{steps: want, reasons: make(map[int]string)}
	for _, change := range changes {
		if _, ok := c.reasons[change.Offset]; !ok {
			c.reasons[change.Offset] = reason(change)
		}
	}
	var err error
	if c.source, err = jsondoc.Parse(source, jsondoc.Limits{}); err != nil {
		return nil, err
	}
	defer c.source.Release()
	if c.stored, err = jsondoc.Parse(stored, jsondoc.Limits{}); err != nil {
		return nil, err
	}
	defer c.stored.Release()
	c.value(jsondoc.Root, jsondoc.Root)
	return c, nil
}

// reason says in a few words why a change was made.
func reason(c espalier.Change) string {
	switch c.What {
	case espalier.Pruned:
		if c.Nearest != "" {
			return "pruned: " + c.Detail + "; did you mean " + strconv.Quote(c.Nearest) + "?"
		}
		return "pruned: " + c.Detail
	case espalier.NullDropped:
		return "dropped: " + c.Detail
	case espalier.Defaulted:
		return "default: " + c.Detail
	}
	return c.Detail
}

// metadataReason is for what ObjectMeta loses or changes and the engine does
// not report by itself.
const metadataReason = "metadata is stored in the form of ObjectMeta"

// reason says why the member whose key is k went.
func (c *comparison) reason(k jsondoc.Value) string {
	if why, ok := c.reasons[c.source.Offset(k)]; ok {
		return why
	}
	switch string(c.path) {
	case "/status":
		return "dropped: status is written through its subresource"
	case "/metadata/namespace":
		return "dropped: the resource is of cluster scope"
	}
	return metadataReason
}

// value writes what becomes of a value of the source that is stored as another.
func (c *comparison) value(v, stored jsondoc.Value) {
	kind := c.source.Kind(v)
	switch {
	case kind == jsondoc.Object && c.stored.Kind(stored) == jsondoc.Object:
		c.object(v, stored)
	case kind == jsondoc.Array && c.stored.Kind(stored) == jsondoc.Array && c.source.Len(v) == c.stored.Len(stored):
		c.array(v, stored)
	default:
		c.scalar(v, stored)
	}
}

func (c *comparison) scalar(v, stored jsondoc.Value) {
	raw, now := c.source.Raw(v), c.stored.Raw(stored)
	if bytes.Equal(raw, now) || bytes.Equal(c.source.AppendCanonical(nil, v), now) {
		c.out = append(c.out, raw...)
		return
	}
	wanted, why := c.steps.prune, metadataReason
	if c.source.Kind(v) == jsondoc.Null {
		wanted, why = c.steps.fill, "default: null is not allowed here"
	}
	if !wanted {
		c.out = append(c.out, raw...)
		return
	}
	c.alter(splice.Edit{Op: splice.Set, Value: bytes.Clone(now)}, c.source.Offset(v), why)
	c.out = append(c.out, now...)
}

func (c *comparison) array(v, stored jsondoc.Value) {
	c.out = append(c.out, '[')
	counterpart := stored + 1
	for i, item := range c.source.Items(v) {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		length := len(c.path)
		c.path = appendToken(c.path, strconv.Itoa(i))
		c.value(item, counterpart)
		c.path = c.path[:length]
		counterpart = c.stored.Next(counterpart)
	}
	c.out = append(c.out, ']')
}

func (c *comparison) object(v, stored jsondoc.Value) {
	c.out = append(c.out, '{')
	begin := len(c.out)
	kept := make(map[string]jsondoc.Value, c.stored.Len(stored)) // what is stored and not yet written
	var names []string
	for m := range c.stored.Members(stored) {
		name := string(c.stored.Key(m.Key))
		kept[name] = m.Value
		names = append(names, name)
	}
	for m := range c.source.Members(v) {
		k, name := m.Key, string(c.source.Key(m.Key))
		if m.Duplicate {
			c.repeated = append(c.repeated, c.source.Offset(k))
		}
		counterpart, ok := kept[name]
		delete(kept, name)
		length := len(c.path)
		c.path = appendToken(c.path, name)
		switch {
		case ok:
			c.member(begin, name)
			c.value(k+1, counterpart)
		case c.steps.prune:
			c.alter(splice.Edit{Op: splice.Remove}, c.source.Offset(k), c.reason(k))
		default:
			c.member(begin, name)
			c.out = append(c.out, c.source.Raw(k+1)...)
		}
		c.path = c.path[:length]
	}
	for _, name := range names {
		added, ok := kept[name]
		if !ok || !c.steps.fill {
			continue
		}
		length := len(c.path)
		c.path = appendToken(c.path, name)
		c.alter(splice.Edit{Op: splice.Insert, Value: bytes.Clone(c.stored.Raw(added))}, c.source.Offset(v), "default")
		c.path = c.path[:length]
		c.member(begin, name)
		c.out = append(c.out, c.stored.Raw(added)...)
	}
	c.out = append(c.out, '}')
}

// member writes the key of a member.
func (c *comparison) member(begin int, name string) {
	if len(c.out) > begin {
		c.out = append(c.out, ',')
	}
	c.out = append(jsondoc.AppendString(c.out, name), ':')
}

func (c *comparison) alter(e splice.Edit, offset int, why string) {
	e.Pointer = string(c.path)
	c.alterations = append(c.alterations, alteration{e, offset, why})
}
