package lint

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// A fix that is printed as code is compiled before it is printed. Until then a finding
// has a sentence instead, which it keeps if the schema with the code has errors.

// proposal is code to be printed if the schema accepts it.
type proposal struct {
	found int // the finding
	code  string
	edits []edit
}

// edit replaces bytes of a schema.
type edit struct {
	from   int // in the parsed schema
	length int // -1: a whole JSON string
	text   string
}

// replaceString replaces the JSON string at an offset.
func replaceString(at int, text string) edit { return edit{at, -1, jsonString(text)} }

func jsonString(text string) string {
	raw, _ := json.Marshal(text) // strings have no errors
	return string(raw)
}

// insertInto adds members, in JSON with a comma at the end, to the object at an offset,
// which is not empty.
func insertInto(at int, members string) edit { return edit{at + 1, 0, members} }

// sameMember reports whether two edits add the same member.
func (e edit) sameMember(other edit) bool {
	name, _, _ := strings.Cut(e.text, ":")
	return e.from == other.from && e.length == 0 && other.length == 0 && strings.HasPrefix(other.text, name+":")
}

// propose offers code for the fix of a finding.
func (c *checker) propose(found int, code string, edits ...edit) {
	if found >= 0 {
		c.fixes = append(c.fixes, proposal{found, code, edits})
	}
}

// maxAlone is how many fixes are compiled one by one, if not all of them are right.
const maxAlone = 16

// prove prints the code of those proposals for the current version with which its
// schema still compiles. Mostly all do, and one compilation shows it.
func (c *checker) prove() {
	list := c.fixes
	c.fixes = nil
	if len(list) == 0 {
		return
	}
	if !c.compiles(list) {
		list = slices.DeleteFunc(list[:min(len(list), maxAlone)], func(p proposal) bool { return !c.compiles([]proposal{p}) })
	}
	for _, p := range list {
		f := &c.found[p.found]
		c.bytes += len(p.code)
		f.Fix = p.code
	}
}

// compiles reports whether the schema has no errors with the proposals. It may be as
// expensive as it was before.
func (c *checker) compiles(list []proposal) bool {
	edited, ok := c.edited(list)
	if !ok {
		return false
	}
	after, ok := c.errors(edited)
	if !ok {
		return false
	}
	if len(after) == 0 {
		return true
	}
	before, ok := c.errors(c.version.Schema)
	return ok && len(after) <= len(before)
}

// errors returns the errors of a schema about costs. It reports false if there are others.
func (c *checker) errors(schema []byte) ([]finding.Finding, bool) {
	found, err := crd.Check(schema, crd.CheckOptions{CompatibilityVersion: c.options.CompatibilityVersion, StatusSubresource: c.version.Status})
	if err != nil {
		return nil, false
	}
	list := finding.Errors(found)
	return list, !slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check != cel.RuleCost && f.Check != cel.RuleTotalCost })
}

// edited returns the schema of the version with the proposals.
func (c *checker) edited(list []proposal) ([]byte, bool) {
	var edits []edit
	for _, p := range list {
		for _, e := range p.edits {
			e.from += c.shift - c.version.Offset
			edits = append(edits, e)
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	old := c.version.Schema
	var schema []byte
	at := 0
	for i, e := range edits {
		if i > 0 && e.sameMember(edits[i-1]) {
			continue // two findings propose the same
		}
		if e.from < at || e.from >= len(old) {
			return nil, false
		}
		schema = append(append(schema, old[at:e.from]...), e.text...)
		at = e.from + e.length
		if e.length < 0 {
			if at = stringAt(old, e.from); at < 0 {
				return nil, false
			}
		}
	}
	return append(schema, old[at:]...), true
}

// stringAt returns the end of the JSON string at an offset, -1 if none begins there.
func stringAt(doc []byte, at int) int {
	if doc[at] != '"' {
		return -1
	}
	for at++; at < len(doc); at++ {
		switch doc[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return -1
}
