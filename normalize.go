package espalier

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Source is where an object comes from.
type Source uint8

// The sources of objects.
const (
	// Request is for objects that a client sends: metadata that does not
	// decode is refused.
	Request Source = iota
	// Storage is for objects that were accepted before and are read from
	// storage: malformed metadata fields are dropped.
	Storage
	// Converted is for objects that come from another version of the resource:
	// no defaults are filled in, because an API server fills in those of the
	// version that an object was sent or stored in.
	Converted
)

// Changes is a set of kinds of changes to an object.
type Changes uint16

// What can happen to an object.
const (
	// Mismatched: a value is not of its schema's type. It is left in place;
	// validation refuses it.
	Mismatched = Changes(exec.Mismatched)
	// Duplicated: a key appeared more than once; the last value counts.
	Duplicated = Changes(exec.Duplicated)
	// Pruned: a field that the schema does not specify was removed.
	Pruned = Changes(exec.Pruned)
	// NullDropped: a null was removed that is not nullable and has no default.
	NullDropped = Changes(exec.NullDropped)
	// Coerced: metadata was converted to the form of ObjectMeta.
	Coerced = Changes(exec.Coerced)
	// Defaulted: a default was filled in.
	Defaulted = Changes(exec.Defaulted)
)

var changeNames = []struct {
	bit  Changes
	name string
}{
	{Mismatched, "mismatched"}, {Duplicated, "duplicated"}, {Pruned, "pruned"},
	{NullDropped, "null-dropped"}, {Coerced, "coerced"}, {Defaulted, "defaulted"},
}

// String lists the members of the set, separated by commas.
func (c Changes) String() string {
	var names []string
	for _, n := range changeNames {
		if c&n.bit != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// Change is one change that Normalize made to an object.
type Change struct {
	What    Changes // one member
	Path    string  // where, as in spec.list[2].field
	Offset  int     // byte offset in the object; for a default that of the object it went into
	Detail  string  // why
	Nearest string  // for a pruned field: the known sibling with the most similar name, if one is similar
}

// Report lists the changes to an object.
type Report struct {
	Changes []Change
	// Omitted counts changes beyond what a report holds (100,000 changes,
	// 16 MiB of paths).
	Omitted int
}

// Pruned returns the paths of the pruned fields, sorted, in the form of the
// API server's unknown-field warnings.
func (r *Report) Pruned() []string {
	var paths []string
	for _, c := range r.Changes {
		if c.What == Pruned {
			paths = append(paths, c.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// NormalizeOptions say how an object is normalized.
type NormalizeOptions struct {
	Source Source
	Report *Report // filled if not nil; asking for none costs nothing
	// Quiet are changes that are not worth a report: if nothing else happens it stays empty, and costs
	// nothing.
	Quiet Changes
	// Keep has the result keep the index of the object, so that ValidateResult
	// need not parse it. Release gives it back; until then the object's bytes
	// must not change.
	Keep   bool
	Limits Limits
}

// Result is a normalized object.
type Result struct {
	// Bytes are canonical JSON, without a newline at the end. They are the
	// input itself if that was canonical and needed no change.
	Bytes   []byte
	Changes Changes

	doc   *jsondoc.Doc // the object as it was given, if it says the same as Bytes
	typed bool         // every value of it is of its schema's type
}

func init() {
	bridge.Read = read
	bridge.Index = func(result any) (*jsondoc.Doc, bool) {
		r := result.(*Result)
		d := r.doc
		r.doc = nil
		return d, r.typed
	}
	bridge.Validation = func(v *exec.Result) any { return validation(v) }
	bridge.Plan = func(schema any) *plan.Node { return schema.(*Schema).plan }
	bridge.Rules = func(compiled exec.Rules) any { return &Rules{compiled} }
	bridge.Compiled = func(rules any) exec.Rules { return rules.(*Rules).compiled }
}

// Release gives back what Keep has kept. Bytes and Changes stay.
func (r *Result) Release() {
	if r.doc != nil {
		r.doc.Release()
		r.doc = nil
	}
}

// ObjectError is returned for an object whose apiVersion, kind or metadata, or
// those of an embedded resource, are invalid.
type ObjectError struct {
	Path   string
	Offset int
	Err    error // the API server's error
}

// Error renders the API server's error.
func (e *ObjectError) Error() string { return e.Err.Error() }

// Unwrap returns the API server's error.
func (e *ObjectError) Unwrap() error { return e.Err }

// Normalize returns object, the JSON of a whole custom resource, in the form that
// an API server stores: it checks types, prunes unspecified fields, drops nulls,
// coerces metadata and fills in defaults, with the results of doing so in that
// order.
//
// It returns a *SyntaxError for input that is not JSON and an *ObjectError for
// invalid metadata. Values of the wrong type are no error: the Changes
// and the report name them, and validation refuses them.
func (s *Schema) Normalize(object []byte, o NormalizeOptions) (Result, error) {
	var rec *exec.Recorder
	if o.Report != nil {
		rec = new(exec.Recorder)
	}
	if s.validationOnly {
		return Result{}, ErrValidationOnly
	}
	out, changes, doc, err := exec.Normalize(s.plan, object, exec.Options{
		Storage: o.Source == Storage, NoDefaults: o.Source == Converted, Record: rec, Quiet: exec.Changes(o.Quiet), Limits: jsondoc.Limits(o.Limits), Keep: o.Keep,
	})
	if err != nil {
		return Result{}, objectError(err)
	}
	if rec != nil {
		o.Report.fill(rec)
	}
	// Metadata read from storage is not checked as closely.
	typed := changes&exec.Mismatched == 0 && o.Source == Request
	return Result{Bytes: out, Changes: Changes(changes), doc: doc, typed: typed}, nil
}

func (r *Report) fill(rec *exec.Recorder) {
	r.Omitted = rec.Omitted
	r.Changes = make([]Change, len(rec.Changes))
	for i, c := range rec.Changes {
		r.Changes[i] = Change{What: Changes(c.What), Path: c.Path, Offset: c.Offset, Detail: c.Detail, Nearest: c.Nearest}
	}
}

// NormalizeValue does the same to a decoded object, in place, for callers that
// hold one. Offsets in the report refer to its canonical encoding. It costs an
// encoding and, if something changes, a decoding more than Normalize.
func (s *Schema) NormalizeValue(object map[string]any, o NormalizeOptions) (Changes, error) {
	if object == nil {
		return 0, errors.New("the object is nil")
	}
	src, err := jsondoc.AppendAny(nil, object)
	if err != nil {
		return 0, err
	}
	res, err := s.Normalize(src, o)
	if err != nil {
		return 0, err
	}
	if &res.Bytes[0] == &src[0] {
		return res.Changes, nil
	}
	d, err := jsondoc.Parse(res.Bytes, jsondoc.Limits(o.Limits))
	if err != nil {
		return res.Changes, err
	}
	defer d.Release()
	clear(object)
	maps.Copy(object, d.Any(jsondoc.Root).(map[string]any))
	return res.Changes, nil
}

func objectError(err error) error {
	if e, ok := err.(*exec.Error); ok {
		return &ObjectError{Path: e.Path, Offset: e.Offset, Err: e.Err}
	}
	return syntaxError(err)
}
