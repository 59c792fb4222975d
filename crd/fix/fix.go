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

// Edit is one change of a CRD. Each edit applies to the result of the edits before
// it.
type Edit struct {
	Op      Op
	Pointer string     // RFC 6901, in the CRD
	From    string     // of Move and Copy
	Value   []byte     // JSON, of Set and Insert
	Before  string     // the new member goes before this one, or to the end if it does not exist
	Check   finding.ID // the check that the CRD then passes, such as "junctor-type"
	Why     string     // one sentence
}

// Kind says what a note is about.
type Kind uint8

// The kinds of notes.
const (
	// Advice: the author should know or check something.
	Advice Kind = iota
	// Wider: something is no longer checked.
	Wider
	// Narrower: a missing type was inferred, and values of other types are now
	// refused.
	Narrower
	// Cannot: this cannot be fixed. The schema is not changed.
	Cannot
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"advice", "wider", "narrower", "cannot"}[k]
}

// Note is something that the author should know.
type Note struct {
	Kind    Kind
	Pointer string // RFC 6901, in the CRD after the edits; see Origin
	Check   finding.ID
	Text    string
}

// Result is the result of fixing a CRD.
type Result struct {
	Edits   []Edit
	JSON    []byte // the CRD after the edits
	Notes   []Note
	Changed bool // there are edits
}

// The checks of package crd that are not about schemas.
const (
	idVersion  = "api-version-removed"
	idSchema   = "schema-required"
	idPreserve = "preserve-unknown-fields"
	idScope    = "scope-unknown"
	idReviews  = "conversion-review-versions"
	idApproval = "api-approval"
	idSyntax   = "syntax" // the schema can be read
)

const (
	apiVersion = "apiextensions.k8s.io/v1"
	beta       = "apiextensions.k8s.io/v1beta1"
)

// maxEdits bounds the bytes of pointers and values in the edits of a schema:
// deep schemas could otherwise have a quadratic number of them.
const maxEdits = 16 << 20

// CRD returns the edits after which current API servers accept a CRD, given as
// JSON. It fails if the document is not a CustomResourceDefinition.
func CRD(document []byte) (Result, error) {
	if _, err := crd.Parse(document); err != nil {
		return Result{}, err
	}
	root, err := parse(document)
	if err != nil {
		return Result{}, err
	}
	d := draft{root: root}
	spec := root.object("spec")
	if spec == nil {
		d.note(Cannot, "/spec", idVersion, "the CRD has no spec")
		return d.result(document), nil
	}
	prunes := true // of the old CRD
	if root.string("apiVersion") == beta {
		prunes = spec.has("preserveUnknownFields") && !spec.is("preserveUnknownFields")
		if !d.upgrade() {
			return d.untouched(document), nil
		}
	}
	keepUnknown := !prunes
	if spec.is("preserveUnknownFields") {
		keepUnknown = true
		d.remove("/spec/preserveUnknownFields", reason{idPreserve, "In v1, only the schema can preserve unknown fields."})
	}
	failed := false
	for i := range spec.items("versions") {
		if !d.version(i, keepUnknown, !prunes) {
			failed = true
		}
	}
	if failed && keepUnknown {
		// A CRD in v1 with such a schema would be refused, and one
		// without preserveUnknownFields would prune.
		return d.untouched(document), nil
	}
	return d.result(document), nil
}

// untouched is the result if nothing can be done: only the notes that say so,
// on the CRD as it was given.
func (d *draft) untouched(document []byte) Result {
	made := Result{Edits: d.edits}
	r := Result{JSON: document}
	for _, n := range d.notes {
		if n.Kind == Cannot {
			n.Pointer = made.Origin(n.Pointer, len(d.edits))
			r.Notes = append(r.Notes, n)
		}
	}
	return r
}

// Origin returns the pointer in the original CRD of the value that is at pointer
// after the first n edits. For a new value it returns a pointer to nothing, below
// the original parent.
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

// draft is a CRD on its way.
type draft struct {
	root  *node
	edits []Edit
	notes []Note
}

func (d *draft) note(kind Kind, pointer string, check finding.ID, text string) {
	d.notes = append(d.notes, Note{kind, pointer, check, text})
}

func (d *draft) result(document []byte) Result {
	r := Result{Edits: d.edits, JSON: document, Notes: d.notes, Changed: len(d.edits) > 0}
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
		d.note(Cannot, pointer, idVersion, "a version must be an object")
		return false
	}
	if s := version.get("schema"); s == nil || s.kind == jsondoc.Object && !s.has("openAPIV3Schema") {
		d.insert(pointer+"/schema", `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, "",
			reason{idSchema, "In v1, every version must have a schema. This one accepts and keeps every field, like the version without a schema."})
		d.note(Advice, pointer+"/schema", idSchema, "the version had no schema and now has an empty one: specify the fields, so that the API server validates them and prunes unknown fields")
		return true
	}
	schema := version.object("schema").object("openAPIV3Schema")
	pointer += "/schema/openAPIV3Schema"
	if schema == nil {
		d.note(Cannot, pointer, idSchema, "the schema is not an object")
		return false
	}
	status := version.object("subresources").has("status")
	f := fixer{base: pointer, status: status, keepUnknown: keepUnknown, pruningIsNew: pruningIsNew, defaults: true}
	fixed, ok := f.schema(schema)
	if f.retry {
		f = fixer{base: pointer, status: status, keepUnknown: keepUnknown, pruningIsNew: pruningIsNew}
		fixed, ok = f.schema(schema)
	}
	d.notes = append(d.notes, f.notes...)
	if !ok || fixed == nil {
		return ok
	}
	changes := differ{path: []byte(pointer), budget: maxEdits}
	changes.diff(schema, fixed, reason{"type-required", "The schema becomes structural."})
	if changes.budget < 0 {
		d.note(Cannot, pointer, "too-many-findings", "too many changes to show")
		return false
	}
	d.edits = append(d.edits, changes.edits...)
	holder := version.object("schema")
	holder.kids[holder.index("openAPIV3Schema")] = fixed
	return true
}

// The methods below make an edit and note it.

func (d *draft) insert(pointer, value, before string, why reason) {
	d.edits = append(d.edits, Edit{Op: Insert, Pointer: pointer, Value: []byte(value), Before: before, Check: why.check, Why: why.text})
	parent, key := d.at(pointer)
	parent.set(key, literal(value), reason{}, before)
}

func (d *draft) set(pointer, value string, why reason) {
	d.edits = append(d.edits, Edit{Op: Set, Pointer: pointer, Value: []byte(value), Check: why.check, Why: why.text})
	parent, key := d.at(pointer)
	parent.set(key, literal(value), reason{})
}

func (d *draft) remove(pointer string, why reason) {
	d.edits = append(d.edits, Edit{Op: Remove, Pointer: pointer, Check: why.check, Why: why.text})
	parent, key := d.at(pointer)
	parent.del(key, reason{})
}

func (d *draft) carry(op Op, from, to string, why reason) {
	d.edits = append(d.edits, Edit{Op: op, Pointer: to, From: from, Check: why.check, Why: why.text})
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

// wrong returns the first error of a schema.
func wrong(schema []byte, status bool) *finding.Finding {
	found, err := crd.Check(schema, crd.CheckOptions{StatusSubresource: status})
	if err != nil {
		f := finding.Finding{Check: idSyntax, Detail: err.Error()}
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

// incomplete reports whether logical keywords below the root mention what is nowhere
// specified, and would be pruned.
func incomplete(schema []byte) bool {
	found, err := espalier.Check(schema, espalier.CheckOptions{})
	if err != nil {
		return false
	}
	for _, f := range found {
		if f.Check == "incomplete-below-root" {
			return true
		}
	}
	return false
}
