package fix

import (
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Keywords with long names.
const (
	preserve    = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
	embedded    = "x-kubernetes-embedded-resource"
	listType    = "x-kubernetes-list-type"
)

// fixer makes one schema structural.
type fixer struct {
	base         string // pointer of the schema in the CRD
	status       bool   // the status subresource is enabled
	keepUnknown  bool   // unknown fields at the root are to be preserved
	pruningIsNew bool   // clusters did not prune by the old schema
	defaults     bool   // move defaults out of allOf

	path   []byte
	notes  []Note
	noted  int // bytes of the notes
	failed bool
	retry  bool // it may work without moving defaults

	definitions *node
	open        map[string]bool // the references that are being inlined
	budget      int             // of values that inlining may still add
}

// schema returns the schema made structural, nil if there is nothing to do. It
// reports false if it cannot be done.
func (f *fixer) schema(s *node) (*node, bool) {
	before := s.appendJSON(nil)
	found := wrong(before, f.status)
	if found == nil && !(f.keepUnknown && !s.is(preserve)) && !(f.pruningIsNew && incomplete(before)) {
		return nil, true
	}
	fixed := s.fork()
	if found != nil || f.pruningIsNew && incomplete(before) {
		f.budget = maxInlined
		if all := fixed.object("definitions"); all != nil {
			f.definitions = all.clone()
		}
		f.plain(fixed)
		f.core(fixed, nil, nil, place{root: true})
	}
	if f.keepUnknown && !fixed.is(preserve) {
		fixed.set(preserve, truth(), reason{idPreserve, "Unknown fields were preserved. In v1, the schema must say so."})
		f.note(Advice, "", idPreserve, "unknown fields at the root are preserved as before; in objects further down that specify fields, the API server now prunes unknown fields, unless they have x-kubernetes-preserve-unknown-fields: true themselves. To prune unknown fields everywhere, remove the keyword here")
	}
	if f.failed {
		f.give("", "", "")
		return nil, false
	}
	if left := wrong(fixed.appendJSON(nil), f.status); left != nil {
		f.retry = f.defaults
		detail := left.Detail
		if left.Path != "" {
			detail = left.Error()
		}
		f.give(left.Pointer, left.Check, "the schema cannot be fixed: "+detail)
		return nil, false
	}
	return fixed, true
}

// give forgets all notes but those on what cannot be done, and adds one.
func (f *fixer) give(pointer string, check finding.ID, text string) {
	kept := f.notes[:0]
	for _, n := range f.notes {
		if n.Kind == Cannot {
			kept = append(kept, n)
		}
	}
	f.notes = kept
	if text != "" {
		f.notes = append(f.notes, Note{Cannot, f.base + pointer, check, text})
	}
}

// maxNotes bounds the bytes of the notes on a schema: deep schemas could
// otherwise have a quadratic number of them.
const maxNotes = 16 << 20

func (f *fixer) note(kind Kind, pointer string, check finding.ID, text string) {
	if f.noted > maxNotes {
		return
	}
	if f.noted += len(f.base) + len(f.path) + len(pointer) + len(text); f.noted > maxNotes {
		f.failed = true
		kind, pointer, check, text = Cannot, "", "too-many-findings", "too many notes about the changes to show"
	}
	f.notes = append(f.notes, Note{kind, f.base + string(f.path) + pointer, check, text})
}

func (f *fixer) cannot(pointer string, check finding.ID, text string) {
	f.failed = true
	f.note(Cannot, pointer, check, text)
}

// enter goes to a place below the current one; the function returned goes back.
func (f *fixer) enter(tokens ...string) func() {
	n := len(f.path)
	for _, t := range tokens {
		f.path = syntax.AppendToken(f.path, t)
	}
	return func() { f.path = f.path[:n] }
}

// kinds is a set of kinds of values.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindFraction
	kindString
	kindArray
	kindObject

	anyKind = kindNull | kindBoolean | kindInteger | kindFraction | kindString | kindArray | kindObject
)

var kindsOfType = map[string]kinds{
	"boolean": kindBoolean, "integer": kindInteger, "number": kindInteger | kindFraction,
	"string": kindString, "array": kindArray, "object": kindObject,
}

// kindsOf returns the kinds of values that the type of s, and what belongs to
// it, admits. nil admits everything.
func kindsOf(s *node) kinds {
	if s == nil {
		return anyKind
	}
	var k kinds
	typ := s.string("type")
	switch {
	case s.is(intOrString):
		k = kindInteger | kindString
	case typ == "":
		return anyKind
	default:
		k = kindsOfType[typ]
		if typ == "string" && s.has("format") {
			k |= kindArray // clusters accept arrays there, if they know the format
		}
	}
	if s.is("nullable") {
		k |= kindNull
	}
	return k
}

// typed reports whether s says what kinds of values it admits.
func typed(s *node) bool { return s.string("type") != "" || s.is(intOrString) }

// empty reports whether s says nothing.
func empty(s *node) bool { return s.kind == jsondoc.Object && len(s.keys) == 0 }

var lists = []string{"allOf", "anyOf", "oneOf"}
