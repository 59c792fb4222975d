package trial

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd/sample"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// comparison finds out where the values of an object come from.
type comparison struct {
	rules       *declared
	version     string
	tree, other *syntax.Schema
	removed     func(place string) bool // from the edited object
}

// leaves are the values of an object by their place; items of lists with keys by their keys. Lists without keys are
// values.
type leaves struct {
	values map[string]string
	exists map[string]bool // objects and entries, too
}

// compare looks at the object that was converted (a), what it is without what was preserved (a1), the same after an
// edit (a0), and the edited object with it (got). It returns the contract that does not hold, and where.
func (x *comparison) compare(a, a1, a0, got any) (Contract, string) {
	was, plain, fresh, is := x.leaves(a), x.leaves(a1), x.leaves(a0), x.leaves(got)
	places := map[string]bool{}
	for _, l := range []leaves{was, plain, fresh, is} {
		for p := range l.values {
			places[p] = true
		}
	}
	ordered := make([]string, 0, len(places))
	for p := range places {
		ordered = append(ordered, p)
	}
	slices.Sort(ordered)
	for _, p := range ordered {
		v, has := is.values[p]
		saved, had := was.values[p]
		live, lives := fresh.values[p]
		before, lived := plain.values[p]
		fromA, fromLive := has == had && v == saved, has == lives && v == live
		switch {
		case fromA && fromLive:
		case has && v == "{}" && !fromA && !fromLive && (was.exists[p] || fresh.exists[p]): // of what it held, nothing is left
		case has && !fromA && !fromLive:
			return Invented, fmt.Sprintf("%s is %s, which neither the object nor the edit has there", p, v)
		case lives == lived && live == before: // the edit does not change it
			if !fromA && !x.excused(p, was, plain, fresh, is) {
				return Kept, fmt.Sprintf("%s was %s and is %s", p, shown(saved, had), shown(v, has))
			}
		default:
			if !fromLive && !(live == "{}" && is.exists[p]) && !x.isCalculated(p) {
				return Live, fmt.Sprintf("%s is %s, but the edit makes it %s", p, shown(v, has), shown(live, lives))
			}
		}
	}
	return "", ""
}

func shown(v string, has bool) string {
	if !has {
		return "absent"
	}
	return v
}

// excused reports whether a value that was preserved may be gone.
func (x *comparison) excused(p string, was, plain, fresh, is leaves) bool {
	if x.isCalculated(p) {
		return true
	}
	if v, had := was.values[p]; had && (v == "{}" || v == "null") && is.exists[p] {
		return true // there is more now
	}
	if v, has := is.values[p]; has && v == "{}" && was.exists[p] {
		return true // what it held is reported by itself
	}
	for q := p; q != ""; q = parentOf(q) {
		if x.irregular(parentOf(q), was, plain) {
			return true
		}
		if plain.exists[q] && !fresh.exists[q] || x.removed(q) {
			return true // the edit has removed what held it
		}
		if was.exists[q] && fresh.exists[q] && plain.exists[q] && (isValue(fresh, q) != isValue(was, q)) {
			return true // a null or a value of another type took its place
		}
	}
	return false
}

// irregular reports whether a place is a list that rules make a map, with items that the map cannot hold: those without
// a value. Such a list is preserved as a whole.
func (x *comparison) irregular(place string, was, plain leaves) bool {
	if len(x.rules.keys) == 0 || place == "" {
		return false
	}
	path := ""
	for part := range strings.SplitSeq(place, separator) {
		switch {
		case strings.HasPrefix(part, "["):
			path += "[]"
		case path == "":
			path = part
		default:
			path += "." + part
		}
	}
	if x.rules.keys[path] == "" {
		return false
	}
	for q := range was.exists {
		if parentOf(q) == place && !plain.exists[q] {
			return true
		}
	}
	return false
}

// removals returns which places of the converted object b its edit has removed.
func removals(x *comparison, b, now any) func(string) bool {
	was, is := x.leaves(b), x.leaves(now)
	return func(place string) bool { return was.exists[place] && !is.exists[place] }
}

func isValue(l leaves, p string) bool {
	_, ok := l.values[p]
	return ok
}

const separator = "\x1f"

func parentOf(p string) string {
	if i := strings.LastIndex(p, separator); i >= 0 {
		return p[:i]
	}
	return ""
}

// isCalculated reports whether a rule calculates the value.
func (x *comparison) isCalculated(p string) bool {
	if len(x.rules.calculated[x.version]) == 0 {
		return false
	}
	var parts []string
	for part := range strings.SplitSeq(p, separator) {
		if strings.HasPrefix(part, "[") {
			part = "[]"
		}
		parts = append(parts, part)
	}
	for _, path := range x.rules.calculated[x.version] {
		want := steps(path)
		if len(want) > len(parts) {
			want = want[:len(parts)]
		}
		if slices.EqualFunc(want, parts[:len(want)], func(a, b string) bool { return a == b || a == "[*]" }) {
			return true
		}
	}
	return false
}

func (x *comparison) leaves(o any) leaves {
	l := leaves{values: map[string]string{}, exists: map[string]bool{}}
	m, _ := o.(map[string]any)
	rest := make(map[string]any, len(m))
	for name, v := range m {
		if name != "metadata" && name != "apiVersion" {
			rest[name] = v
		}
	}
	x.walk(&l, "", "", x.tree, x.other, rest)
	return l
}

// walk adds the values below a place. path is the place as rules write it.
func (x *comparison) walk(l *leaves, place, path string, s, other *syntax.Schema, v any) {
	if place != "" {
		l.exists[place] = true
	}
	join := func(part string) string {
		if place == "" {
			return part
		}
		return place + separator + part
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || s == nil || s.EmbeddedResource {
			break
		}
		for name, child := range v {
			at := name
			if path != "" {
				at = path + "." + name
			}
			cs := member(s, name)
			if isMap(s) {
				at = path + "[*]"
			}
			x.walk(l, join(name), at, cs, member(other, name), child)
		}
		return
	case []any:
		ids, keyed := x.identities(path, s, other, v)
		if !keyed {
			break
		}
		for i, item := range v {
			x.walk(l, join("["+ids[i]+"]"), path+"[]", s.ItemSchema(), itemOf(other), item)
		}
		return
	}
	l.values[place] = string(encode(v))
}

func isMap(s *syntax.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Allows && len(s.Properties) == 0
}

func member(s *syntax.Schema, name string) *syntax.Schema {
	if s == nil {
		return nil
	}
	if p := s.Property(name); p != nil || !isMap(s) {
		return p
	}
	return s.AdditionalProperties.Schema
}

func itemOf(s *syntax.Schema) *syntax.Schema {
	if s == nil {
		return nil
	}
	return s.ItemSchema()
}

// identities returns what identifies the items of a list. It reports false for lists whose items are not told apart:
// both versions must have keys.
func (x *comparison) identities(path string, s, other *syntax.Schema, list []any) ([]string, bool) {
	key := x.rules.keys[path]
	if s == nil || key == "" && (s.ListType == nil || *s.ListType != "map" || other != nil && (other.ListType == nil || *other.ListType != "map")) {
		return nil, false
	}
	if len(list) == 0 {
		return nil, false
	}
	seen := map[string]bool{}
	ids := make([]string, len(list))
	for i, item := range list {
		if key != "" {
			if o, ok := item.(map[string]any); ok && o[key] != nil {
				ids[i] = string(encode(o[key]))
			}
		} else {
			ids[i], _ = sample.Identity(s, item)
		}
		if ids[i] == "" || seen[ids[i]] {
			return nil, false
		}
		seen[ids[i]] = true
	}
	return ids, true
}

// difference shows the first place where two texts differ.
func difference(want, got []byte) string {
	n := 0
	for n < len(want) && n < len(got) && want[n] == got[n] {
		n++
	}
	const around = 60
	cut := func(b []byte) string { return string(b[max(0, n-around):min(len(b), n+around)]) }
	return fmt.Sprintf("…%s… is …%s…", cut(want), cut(got))
}
