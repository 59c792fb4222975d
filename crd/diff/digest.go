package diff

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// digest identifies the meaning of a schema: what only explains it, and the
// order of what is a set, do not count.
type digest [sha256.Size]byte

// digest returns the digest of s. Those of the schemas within it are made once,
// so that all of a tree take linear time.
func (c *comparer) digest(s *schema) digest {
	if d, ok := c.hashes[s]; ok {
		return d
	}
	b := fmt.Appendf(nil, "%q %q %q %t %t %t %t %t %t", s.Type, s.Format, s.Pattern, s.Nullable, s.ExclusiveMaximum,
		s.ExclusiveMinimum, s.UniqueItems, s.EmbeddedResource, s.IntOrString)
	for _, f := range []*float64{s.Maximum, s.Minimum, s.MultipleOf} {
		b = optional(b, f)
	}
	for _, n := range []*int64{s.MaxLength, s.MinLength, s.MaxItems, s.MinItems, s.MaxProperties, s.MinProperties} {
		b = optional(b, n)
	}
	b = optional(optional(optional(b, s.PreserveUnknownFields), s.ListType), s.MapType)
	b = fmt.Appendf(b, " %q", s.ListMapKeys)
	for i := range s.Validations {
		r := &s.Validations[i]
		b = fmt.Appendf(b, " rule %q %q %q %q", r.Rule, r.Message, r.MessageExpression, r.FieldPath)
		b = optional(optional(b, r.Reason), r.OptionalOldSelf)
	}
	if s.Default != nil {
		b = append(append(b, " default "...), s.Default.Raw...)
	}
	b = set(append(b, " enum"...), texts(s.Enum))
	b = set(append(b, " required"...), quoted(s.Required))
	b = c.structure(b, s)
	b = c.rare(b, s.Rare())
	d := digest(sha256.Sum256(b))
	c.hashes[s] = d
	return d
}

func optional[T any](b []byte, p *T) []byte {
	if p == nil {
		return append(b, " -"...)
	}
	return fmt.Appendf(b, " %#v", *p)
}

// structure appends the digests of the schemas within s.
func (c *comparer) structure(b []byte, s *schema) []byte {
	b = c.branches(append(b, " allOf"...), s.AllOf)
	b = c.branches(append(b, " anyOf"...), s.AnyOf)
	b = c.branches(append(b, " oneOf"...), s.OneOf)
	if s.Not != nil {
		b = c.child(append(b, " not"...), s.Not)
	}
	b = c.named(append(b, " properties"...), s.Properties)
	b = c.either(b, s.AdditionalProperties)
	if s.Items != nil {
		b = append(b, " items"...)
		if s.Items.Schema != nil {
			b = c.child(b, s.Items.Schema)
		}
		for _, t := range s.Items.Tuple {
			b = c.child(append(b, ','), t)
		}
	}
	return b
}

// rare appends what few schemas have, and most of it only those that clusters
// refuse.
func (c *comparer) rare(b []byte, r *syntax.Rare) []byte {
	b = fmt.Appendf(b, " rare %t", r.ReadOnly)
	b = optional(b, r.Ref)
	b = append(b, unionsText(r.Unions)...)
	b = c.named(append(b, " patterns"...), r.PatternProperties)
	b = c.named(append(b, " definitions"...), r.Definitions)
	for _, d := range r.Dependencies {
		b = fmt.Appendf(b, " dependency %q %q", d.Name, d.Properties)
		if d.Schema != nil {
			b = c.child(b, d.Schema)
		}
	}
	return c.either(b, r.AdditionalItems)
}

func unionsText(unions []syntax.Union) string {
	var b []byte
	for _, u := range unions {
		b = fmt.Appendf(b, " union %q", u.Discriminator)
		for _, f := range u.Fields {
			b = fmt.Appendf(b, " %q:%q", f.Name, f.Value)
		}
	}
	return string(b)
}

func (c *comparer) child(b []byte, s *schema) []byte {
	d := c.digest(s)
	return append(b, d[:]...)
}

// branches appends digests in an order of their own.
func (c *comparer) branches(b []byte, list []*schema) []byte {
	digests := make([][]byte, len(list))
	for i, s := range list {
		d := c.digest(s)
		digests[i] = d[:]
	}
	slices.SortFunc(digests, bytes.Compare)
	return append(b, bytes.Join(digests, nil)...)
}

func (c *comparer) named(b []byte, list []syntax.Property) []byte {
	for _, p := range list {
		b = c.child(jsondoc.AppendString(b, p.Name), p.Schema)
	}
	return b
}

func (c *comparer) either(b []byte, x *syntax.SchemaOrBool) []byte {
	switch {
	case x == nil:
		return append(b, " unsaid"...)
	case x.Schema == nil:
		return fmt.Appendf(b, " %t", x.Allows)
	}
	return c.child(append(b, " schema"...), x.Schema)
}

func texts(values []syntax.JSON) [][]byte {
	list := make([][]byte, len(values))
	for i := range values {
		list[i] = values[i].Raw
	}
	return list
}

func quoted(names []string) [][]byte {
	list := make([][]byte, len(names))
	for i, name := range names {
		list[i] = jsondoc.AppendString(nil, name)
	}
	return list
}

// set appends texts, sorted and without duplicates. It sorts the list.
func set(b []byte, list [][]byte) []byte {
	slices.SortFunc(list, bytes.Compare)
	return append(b, bytes.Join(slices.CompactFunc(list, bytes.Equal), []byte{','})...)
}
