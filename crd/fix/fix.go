package fix

import (
	"errors"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Op is what an edit does.
type Op uint8

// The operations.
const (
	Set    Op = iota // replaces the value at Pointer by Value
	Insert           // adds Value as the member or item at Pointer
	Remove           // takes out the member or item at Pointer
	Move             // takes the member at From to Pointer
	Copy             // repeats the member at From at Pointer
)

// String names the operation.
func (o Op) String() string {
	return [...]string{"set", "insert", "remove", "move", "copy"}[o]
}

// Edit is one change of a definition. Edits are made one after the other, each
// to what those before it have left.
type Edit struct {
	Op      Op
	Pointer string     // RFC 6901, in the definition
	From    string     // of Move and Copy
	Value   []byte     // JSON, of Set and Insert
	Before  string     // the member in front of which a new one goes; the last place if there is no such member
	Rule    finding.ID // the rule that the definition then satisfies, such as "junctor-type"
	Why     string     // one sentence
}

// Kind says what a note is about.
type Kind uint8

// The kinds of notes.
const (
	// Advice is what the author should know or look at.
	Advice Kind = iota
	// Wider: something is no longer checked.
	Wider
	// Narrower: a type that was nowhere stated was inferred, and values of
	// other types are refused from now on.
	Narrower
	// Cannot: this could not be fixed. The schema is left as it was.
	Cannot
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"advice", "wider", "narrower", "cannot"}[k]
}

// Note is something that the author should know.
type Note struct {
	Kind    Kind
	Pointer string // RFC 6901, in the definition after the edits; see Origin
	Rule    finding.ID
	Text    string
}

// Result is what Definition has to say about a definition.
type Result struct {
	Edits   []Edit
	JSON    []byte // the definition after the edits
	Notes   []Note
	Changed bool // there are edits
}

// The rules, of package crd, that are not about the inside of schemas.
const (
	ruleVersion  = "api-version-removed"
	ruleSchema   = "schema-required"
	rulePreserve = "preserve-unknown-fields"
	ruleScope    = "scope-unknown"
	ruleReviews  = "conversion-review-versions"
	ruleApproval = "api-approval"
	ruleSyntax   = "syntax" // the schema can be read
)

const (
	apiVersion = "apiextensions.k8s.io/v1"
	beta       = "apiextensions.k8s.io/v1beta1"
)

// maxEdits bounds the bytes of pointers and values in the edits of a schema:
// deep schemas could otherwise have a quadratic number of them.
const maxEdits = 16 << 20

// Definition returns the edits that make a definition, as JSON, acceptable to
// today's API servers. The error is for what is no CustomResourceDefinition.
func Definition(definition []byte) (Result, error) {
	if _, err := crd.Parse(definition); err != nil {
		return Result{}, err
	}
	root, err := parse(definition)
	if err != nil {
		return Result{}, err
	}
	d := draft{root: root}
	spec := root.object("spec")
	if spec == nil {
		d.note(Cannot, "/spec", ruleVersion, "there is no spec")
		return d.result(definition), nil
	}
	prunes := true // of the old definition
	if root.string("apiVersion") == beta {
		prunes = spec.has("preserveUnknownFields") && !spec.is("preserveUnknownFields")
		if !d.upgrade() {
			return d.untouched(definition), nil
		}
	}
	keepUnknown := !prunes
	if spec.is("preserveUnknownFields") {
		keepUnknown = true
		d.remove("/spec/preserveUnknownFields", reason{rulePreserve, "In v1, unknown fields are preserved by the schema or not at all."})
	}
	failed := false
	for i := range spec.items("versions") {
		if !d.version(i, keepUnknown, !prunes) {
			failed = true
		}
	}
	if failed && keepUnknown {
		// A definition in v1 with such a schema would be refused, and one
		// without preserveUnknownFields would prune.
		return d.untouched(definition), nil
	}
	return d.result(definition), nil
}

// untouched is the result if nothing can be done: only the notes that say so,
// on the definition as it was given.
func (d *draft) untouched(definition []byte) Result {
	made := Result{Edits: d.edits}
	r := Result{JSON: definition}
	for _, n := range d.notes {
		if n.Kind == Cannot {
			n.Pointer = made.Origin(n.Pointer, len(d.edits))
			r.Notes = append(r.Notes, n)
		}
	}
	return r
}

// Origin returns where in the definition as it was given something is that is at
// pointer after the first n edits. What was not there has a pointer that leads
// nowhere, below what was.
func (r *Result) Origin(pointer string, n int) string {
	for i := min(n, len(r.Edits)) - 1; i >= 0; i-- {
		e := &r.Edits[i]
		if e.Op != Move && e.Op != Copy {
			continue
		}
		if rest, inside := strings.CutPrefix(pointer, e.Pointer); inside && (rest == "" || rest[0] == '/') {
			pointer = e.From + rest
		}
	}
	return pointer
}

// draft is a definition on its way.
type draft struct {
	root  *node
	edits []Edit
	notes []Note
}

func (d *draft) note(kind Kind, pointer string, rule finding.ID, text string) {
	d.notes = append(d.notes, Note{kind, pointer, rule, text})
}

func (d *draft) result(definition []byte) Result {
	r := Result{Edits: d.edits, JSON: definition, Notes: d.notes, Changed: len(d.edits) > 0}
	if r.Changed {
		r.JSON = d.root.appendJSON(nil)
	}
	return r
}

// version makes the schema of a version structural. It reports false if that
// cannot be, and has then changed nothing.
func (d *draft) version(i int, keepUnknown, pruningIsNew bool) bool {
	pointer := fmt.Sprintf("/spec/versions/%d", i)
	version := d.root.object("spec").items("versions")[i]
	if version.kind != jsondoc.Object {
		d.note(Cannot, pointer, ruleVersion, "a version is an object")
		return false
	}
	if s := version.get("schema"); s == nil || s.kind == jsondoc.Object && !s.has("openAPIV3Schema") {
		d.insert(pointer+"/schema", `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, "",
			reason{ruleSchema, "In v1, every version has a schema; this one accepts and keeps everything, as no schema did."})
		d.note(Advice, pointer+"/schema", ruleSchema, "the version had no schema: now it has one that says nothing; specify the fields to have them checked and unknown ones pruned")
		return true
	}
	schema := version.object("schema").object("openAPIV3Schema")
	pointer += "/schema/openAPIV3Schema"
	if schema == nil {
		d.note(Cannot, pointer, ruleSchema, "the schema is not an object")
		return false
	}
	status := version.object("subresources").has("status")
	f := fixer{base: pointer, status: status, keepUnknown: keepUnknown, pruningIsNew: pruningIsNew, defaults: true}
	fixed, ok := f.schema(schema)
	if !ok && f.retry {
		f = fixer{base: pointer, status: status, keepUnknown: keepUnknown, pruningIsNew: pruningIsNew}
		fixed, ok = f.schema(schema)
	}
	d.notes = append(d.notes, f.notes...)
	if !ok || fixed == nil {
		return ok
	}
	changes := differ{path: []byte(pointer), budget: maxEdits}
	changes.diff(schema, fixed, reason{"type-required", "The schema is made structural."})
	if changes.budget < 0 {
		d.note(Cannot, pointer, "too-many-findings", "there is more to change than can be shown")
		return false
	}
	d.edits = append(d.edits, changes.edits...)
	holder := version.object("schema")
	holder.kids[holder.index("openAPIV3Schema")] = fixed
	return true
}

// The methods below make an edit and note it.

func (d *draft) insert(pointer, value, before string, why reason) {
	d.edits = append(d.edits, Edit{Op: Insert, Pointer: pointer, Value: []byte(value), Before: before, Rule: why.rule, Why: why.text})
	parent, key := d.at(pointer)
	parent.set(key, literal(value), reason{}, before)
}

func (d *draft) set(pointer, value string, why reason) {
	d.edits = append(d.edits, Edit{Op: Set, Pointer: pointer, Value: []byte(value), Rule: why.rule, Why: why.text})
	parent, key := d.at(pointer)
	parent.set(key, literal(value), reason{})
}

func (d *draft) remove(pointer string, why reason) {
	d.edits = append(d.edits, Edit{Op: Remove, Pointer: pointer, Rule: why.rule, Why: why.text})
	parent, key := d.at(pointer)
	parent.del(key, reason{})
}

func (d *draft) carry(op Op, from, to string, why reason) {
	d.edits = append(d.edits, Edit{Op: op, Pointer: to, From: from, Rule: why.rule, Why: why.text})
	parent, key := d.at(from)
	value := parent.get(key).clone()
	target, name := d.at(to)
	switch {
	case op == Move && parent == target: // a new name in the same place
		parent.keys[parent.index(key)], parent.at = name, nil
		return
	case op == Move:
		parent.del(key, reason{})
	}
	target.set(name, value, reason{})
}

// at returns the object that a pointer leads into, and the key there.
func (d *draft) at(pointer string) (*node, string) {
	n := d.root
	tokens := split(pointer)
	for _, t := range tokens[:len(tokens)-1] {
		if n.kind == jsondoc.Array {
			n = n.kids[number(t)]
		} else {
			n = n.get(t)
		}
	}
	return n, tokens[len(tokens)-1]
}

// wrong returns the first thing that a server has against a schema.
func wrong(schema []byte, status bool) *finding.Finding {
	found, err := crd.Check(schema, crd.CheckOptions{StatusSubresource: status})
	if err != nil {
		f := finding.Finding{Rule: ruleSyntax, Detail: err.Error()}
		var s *espalier.SyntaxError
		if errors.As(err, &s) {
			f.Pointer = s.Pointer
			f.Detail = s.Msg
		}
		return &f
	}
	for i := range found {
		if found[i].Severity == finding.Error {
			return &found[i]
		}
	}
	return nil
}

// incomplete reports whether junctors below the root mention what is nowhere
// specified, and would be pruned.
func incomplete(schema []byte) bool {
	found, err := espalier.Check(schema, espalier.CheckOptions{})
	if err != nil {
		return false
	}
	for _, f := range found {
		if f.Rule == "incomplete-below-root" {
			return true
		}
	}
	return false
}
