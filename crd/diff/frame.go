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
			c.report(at, Change{Check: "map-type-changed", Level: Risky, Breaks: Writers,
				OldPointer: o.at("x-kubernetes-map-type"), NewPointer: n.at("x-kubernetes-map-type"), Old: mapType(was), New: mapType(is),
				Message: fmt.Sprintf("x-kubernetes-map-type changed from %s to %s: server-side apply merges the object differently, and may remove fields of other owners or leave fields behind", mapType(was), mapType(is))})
		}
		if a, b := unionsText(syntax.WellFormedUnions(was)), unionsText(syntax.WellFormedUnions(is)); a != b {
			x := Change{Check: "union-changed", Level: Risky, Breaks: Writers | Stored,
				OldPointer: o.at("x-kubernetes-unions"), NewPointer: n.at("x-kubernetes-unions"),
				Message: "x-kubernetes-unions changed: some objects may set members that now exclude each other, or lack a member"}
			if b == "" {
				x.Level, x.Breaks = Safe, Readers
				x.Message = "x-kubernetes-unions was removed: readers may get objects with several members set"
			}
			c.report(at, x)
		}
	}
	if a, b := was.Rare().ReadOnly, is.Rare().ReadOnly; a != b {
		x := Change{Check: "read-only-changed", Level: Risky, Breaks: Writers, Old: yes(a), New: yes(b),
			OldPointer: o.at("readOnly"), NewPointer: n.at("readOnly"),
			Message: "the field is now read-only: servers that enforce readOnly reject or ignore values from clients"}
		if a {
			x.Level, x.Breaks, x.Message = Safe, Readers, "the field is no longer read-only: clients may change it"
		}
		c.report(at, x)
	}
	if c.proving == 0 || len(is.Validations) > 0 {
		c.rules(o, n, at, in.root)
	}
}

// defaults compares what is filled in. The values are compared as written: what
// is filled into them is reported at its own place.
func (c *comparer) defaults(o, n value, at *place) {
	was, is := o.frame.s.Default, n.frame.s.Default
	if was == nil && is == nil || was != nil && is != nil && string(was.Raw) == string(is.Raw) {
		return
	}
	x := Change{Level: Risky, Breaks: AllAudiences, OldPointer: o.at("default"), NewPointer: n.at("default"), Old: rendered(was), New: rendered(is)}
	switch {
	case was == nil:
		x.Check = "default-added"
		x.Message = fmt.Sprintf("the default %s was added: the API server fills it in where the field is absent, also in stored objects; this changes their meaning and may make them invalid", x.New)
	case is == nil:
		x.Check = "default-removed"
		x.Message = fmt.Sprintf("the default %s was removed: objects without the field have no value, or are invalid if the field is required", x.Old)
	default:
		x.Check = "default-changed"
		x.Message = fmt.Sprintf("the default changed from %s to %s: new objects get the new default; objects stored with the old default keep it", x.Old, x.New)
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
	x := Change{Check: "list-type-changed", Level: Breaking, Breaks: Writers | Stored, Old: a, New: b,
		OldPointer: o.at("x-kubernetes-list-type"), NewPointer: n.at("x-kubernetes-list-type")}
	implied := b == "atomic" || a == "map" && b == "set"
	what := "list type"
	if a == b {
		what = "list map keys"
		const keyword = "x-kubernetes-list-map-keys"
		x.Check, x.Old, x.New = "list-map-keys-changed", strings.Join(was.ListMapKeys, ", "), strings.Join(is.ListMapKeys, ", ")
		x.OldPointer, x.NewPointer = o.at(keyword), n.at(keyword)
		implied = !slices.ContainsFunc(keys(was), func(k string) bool { return !slices.Contains(keys(is), k) })
	}
	if implied {
		x.Level, x.Breaks = Risky, Writers
		x.Message = fmt.Sprintf("the %s changed from %s to %s: all valid lists stay valid, but server-side apply merges lists differently and may drop or keep items of other owners", what, x.Old, x.New)
	} else {
		x.Message = fmt.Sprintf("the %s changed from %s to %s: the API server rejects lists in which two items are now duplicates, and server-side apply merges lists differently", what, x.Old, x.New)
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
	x := Change{Check: "embedded-changed", Level: Breaking, Breaks: AllAudiences, Old: yes(was.EmbeddedResource), New: yes(is.EmbeddedResource),
		OldPointer: o.at(keyword), NewPointer: n.at(keyword),
		Message: "the object is now an embedded resource: the API server rejects it without apiVersion, kind and valid metadata"}
	switch {
	case is.EmbeddedResource:
	case n.keeps() && is.Property("metadata") == nil:
		x.Level, x.Breaks = Safe, Readers
		x.Message = "the object is no longer an embedded resource: readers may get objects without kind or metadata"
	default:
		x.Message = "the object is no longer an embedded resource: the API server prunes apiVersion, kind and metadata unless the schema specifies them"
	}
	c.report(at, x)
}
