package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// frames compares what gives values their structure, besides fields and items.
func (c *comparer) frames(o, n value, kinds plan.Kinds, at *place, in around) {
	was, is := o.frame.s, n.frame.s
	c.defaults(o, n, at)
	if kinds&arrayKind != 0 {
		c.listTypes(o, n, at)
	}
	if kinds&objectKind != 0 {
		c.embedded(o, n, at)
		if mapType(was) != mapType(is) {
			c.report(at, Change{Rule: "map-type-changed", Level: Risky, Breaks: Writers,
				OldPointer: o.at("x-kubernetes-map-type"), NewPointer: n.at("x-kubernetes-map-type"), Old: mapType(was), New: mapType(is),
				Message: fmt.Sprintf("the map type changes from %s to %s: server-side apply merges the object differently, and may take fields from their owners or leave some behind", mapType(was), mapType(is))})
		}
		if a, b := unionsText(syntax.WellFormedUnions(was)), unionsText(syntax.WellFormedUnions(is)); a != b {
			x := Change{Rule: "union-changed", Level: Risky, Breaks: Writers | Stored,
				OldPointer: o.at("x-kubernetes-unions"), NewPointer: n.at("x-kubernetes-unions"),
				Message: "the unions change: objects may have members set that now exclude each other, or lack one; whether any do depends on them"}
			if b == "" {
				x.Level, x.Breaks = Safe, Readers
				x.Message = "the unions are gone: readers may get objects with several members set"
			}
			c.report(at, x)
		}
	}
	if a, b := was.Rare().ReadOnly, is.Rare().ReadOnly; a != b {
		x := Change{Rule: "read-only-changed", Level: Risky, Breaks: Writers, Old: yes(a), New: yes(b),
			OldPointer: o.at("readOnly"), NewPointer: n.at("readOnly"),
			Message: "the field becomes read-only: servers that honour this refuse or ignore what writers send for it"}
		if a {
			x.Level, x.Breaks, x.Message = Safe, Readers, "the field is no longer read-only: others than the server may change it"
		}
		c.report(at, x)
	}
	if c.proving == 0 || len(is.Validations) > 0 {
		c.rules(o, n, at)
	}
}

// defaults compares what is filled in. The values are compared as written: what
// is filled into them is reported at its own place.
func (c *comparer) defaults(o, n value, at *place) {
	was, is := o.frame.s.Default, n.frame.s.Default
	if was == nil && is == nil || was != nil && is != nil && string(was.Raw) == string(is.Raw) {
		return
	}
	x := Change{Level: Risky, Breaks: Everybody, OldPointer: o.at("default"), NewPointer: n.at("default"), Old: rendered(was), New: rendered(is)}
	switch {
	case was == nil:
		x.Rule = "default-added"
		x.Message = fmt.Sprintf("the default %s is filled in where the field was left out: objects mean something else than when they were written, stored ones too, and may be refused for it", x.New)
	case is == nil:
		x.Rule = "default-removed"
		x.Message = fmt.Sprintf("the default %s is gone: writers who rely on it get objects without the field, or are refused where it is required, and readers no longer find it", x.Old)
	default:
		x.Rule = "default-changed"
		x.Message = fmt.Sprintf("the default changes from %s to %s: writers who rely on the old one get the new one; objects that were stored with the old one keep it", x.Old, x.New)
	}
	c.report(at, x)
}

func rendered(v *syntax.JSON) string {
	if v == nil {
		return ""
	}
	return shorten(string(v.Raw))
}

// listTypes compares what makes items of a list unique and how lists merge.
func (c *comparer) listTypes(o, n value, at *place) {
	was, is := o.frame.s, n.frame.s
	a, b := listType(was), listType(is)
	if a == b && (a != "map" || slices.Equal(keys(was), keys(is))) {
		return
	}
	x := Change{Rule: "list-type-changed", Level: Breaking, Breaks: Writers | Stored, Old: a, New: b,
		OldPointer: o.at("x-kubernetes-list-type"), NewPointer: n.at("x-kubernetes-list-type")}
	implied := b == "atomic" || a == "map" && b == "set"
	if a == b {
		const keyword = "x-kubernetes-list-map-keys"
		x.Rule, x.Old, x.New = "list-map-keys-changed", strings.Join(was.ListMapKeys, ", "), strings.Join(is.ListMapKeys, ", ")
		x.OldPointer, x.NewPointer = o.at(keyword), n.at(keyword)
		implied = !slices.ContainsFunc(keys(was), func(k string) bool { return !slices.Contains(keys(is), k) })
	}
	if implied {
		x.Level, x.Breaks = Risky, Writers
		x.Message = fmt.Sprintf("what identifies the items changes from %s to %s: no list is refused, but server-side apply merges lists differently and may drop or keep items of other owners", x.Old, x.New)
	} else {
		x.Message = fmt.Sprintf("what identifies the items changes from %s to %s: lists in which items are then equal are refused, and server-side apply merges lists differently", x.Old, x.New)
	}
	c.report(at, x)
}

// listType returns the type of a list; atomic is what others are, too.
func listType(s *schema) string {
	if s.ListType == nil || *s.ListType == "" {
		return "atomic"
	}
	return *s.ListType
}

func mapType(s *schema) string {
	if s.MapType == nil || *s.MapType == "" {
		return "granular"
	}
	return *s.MapType
}

func keys(s *schema) []string {
	return slices.Compact(slices.Sorted(slices.Values(s.ListMapKeys)))
}

// embedded compares whether objects are resources themselves.
func (c *comparer) embedded(o, n value, at *place) {
	was, is := o.frame.s, n.frame.s
	if was.EmbeddedResource == is.EmbeddedResource {
		return
	}
	const keyword = "x-kubernetes-embedded-resource"
	x := Change{Rule: "embedded-changed", Level: Breaking, Breaks: Everybody, Old: yes(was.EmbeddedResource), New: yes(is.EmbeddedResource),
		OldPointer: o.at(keyword), NewPointer: n.at(keyword),
		Message: "the object has to be a resource now: without apiVersion, kind and valid metadata it is refused"}
	switch {
	case is.EmbeddedResource:
	case n.keeps() && is.Property("metadata") == nil:
		x.Level, x.Breaks = Safe, Readers
		x.Message = "the object need not be a resource any more: readers may get some without kind or metadata"
	default:
		x.Message = "the object is no resource any more: what its schema does not specify of apiVersion, kind and metadata is pruned"
	}
	c.report(at, x)
}
