package exec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Changes is a set of what happened to an object.
type Changes uint16

// What can happen to an object.
const (
	Mismatched  Changes = 1 << iota // a value's type is not the schema's; it is left for validation to refuse
	Duplicated                      // a key appeared more than once; the last one counts
	Pruned                          // a field that is not specified was removed
	NullDropped                     // a null was removed that is not nullable and has no default
	Coerced                         // metadata was converted to the form of ObjectMeta
	Defaulted                       // a default was filled in
)

// Change is one thing that happened.
type Change struct {
	What    Changes // one of the constants
	Path    string  // where, as in spec.list[2].field
	Offset  int     // byte offset in the object; for a default that of the object it went into
	Detail  string  // why
	Nearest string  // for a pruned field: the known sibling whose name is most alike, if any is
}

// Steps are the parts of normalization a walk performs.
type Steps uint8

// The steps, in upstream's order.
const (
	CheckTypes Steps = 1 << iota
	Prune
	DropNulls
	Coerce
	Default

	AllSteps = CheckTypes | Prune | DropNulls | Coerce | Default
)

// Options say how to run.
type Options struct {
	Storage    bool      // malformed metadata is dropped rather than refused
	NoDefaults bool      // defaults are not filled in
	Record     *Recorder // told of each change, if not nil
	Keep       bool      // return the document, if the object still says the same
	kept       bool      // unknown fields at the top of a value that is no resource are preserved
	at         path      // where a value that is no resource is, for the record
	Limits     jsondoc.Limits
	// Quiet are changes that are not worth a record: if there are no others, nothing is recorded, and
	// what recording takes is saved.
	Quiet Changes
}

// Error is an error about invalid metadata, kind or apiVersion.
type Error struct {
	Path   string // where
	Offset int    // byte offset in the object
	Err    error  // upstream's error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns upstream's error.
func (e *Error) Unwrap() error { return e.Err }

// ErrNotObject is for documents that are no objects.
var ErrNotObject = errors.New("an object was expected at the root of the document")

// walker is the state of a walk.
type walker struct {
	out     jsondoc.Writer
	d       *jsondoc.Doc
	steps   Steps
	storage bool
	changes Changes
	track   bool // keep path, for a report or an error
	path    path
	rec     *Recorder
	ranks   []rankedKey // scratch of rank
	base    int         // byte offset to report for values of derived documents; -1 for the original
	buf     []byte
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

const maxPooledBuffer = 4 << 20

func newWalker(d *jsondoc.Doc, steps Steps, o Options) *walker {
	w := walkers.Get().(*walker)
	w.d, w.steps, w.storage, w.rec = d, steps, o.Storage, o.Record
	w.changes, w.base = 0, -1
	w.track = o.Record != nil
	w.path, w.ranks = w.path[:0], w.ranks[:0]
	w.out.Reset(d, w.buf)
	return w
}

// finish returns a copy of the output, or the source if it is the same.
func (w *walker) finish() []byte {
	out, unchanged := w.out.Finish()
	if !unchanged {
		w.buf = out
		out = append(make([]byte, 0, len(out)), out...)
	}
	return out
}

func (w *walker) release() {
	w.d, w.rec = nil, nil
	w.out = jsondoc.Writer{}
	if cap(w.buf) > maxPooledBuffer {
		w.buf = nil
	}
	walkers.Put(w)
}

// Normalize brings src, a whole custom resource, into the form that n
// specifies. The result is canonical; it is src itself if src already was.
// With Keep it comes with the document of src, which the caller has to release,
// unless it says something else than the result will when that is read.
func Normalize(n *plan.Node, src []byte, o Options) ([]byte, Changes, *jsondoc.Doc, error) {
	d, err := jsondoc.Parse(src, o.Limits)
	if err != nil {
		return nil, 0, nil, err
	}
	first := o
	if o.Quiet != 0 {
		first.Record = nil
	}
	out, changes, err := normalize(n, d, first)
	if err == nil && first.Record != o.Record && changes&^o.Quiet != 0 {
		out, changes, err = normalize(n, d, o)
	}
	if o.Keep && err == nil && changes&^Mismatched == 0 && d.Settled() {
		return out, changes, d, nil
	}
	d.Release()
	return out, changes, nil, err
}

func normalize(n *plan.Node, d *jsondoc.Doc, o Options) ([]byte, Changes, error) {
	if d.Kind(jsondoc.Root) != jsondoc.Object {
		return nil, 0, &Error{Err: ErrNotObject, Offset: d.Offset(jsondoc.Root)}
	}
	steps := AllSteps
	if o.NoDefaults {
		steps &^= Default
	}
	w := newWalker(d, steps, o)
	defer w.release()
	err := w.root(n)
	if err != nil && !w.track {
		// Paths are kept only if the caller asks for them; now one is needed.
		w.changes, w.track, w.path = 0, true, w.path[:0]
		w.out.Reset(d, w.buf)
		err = w.root(n)
	}
	if err != nil {
		return nil, w.changes, err
	}
	return w.finish(), w.changes, nil
}

// PrepareDefault returns a default as it is going to be inserted: coerced and
// pruned by its own schema, as upstream does when it begins to serve a CRD,
// and with the defaults below it filled in. keep is for items of an array whose
// unknown fields are preserved.
func PrepareDefault(n *plan.Node, src []byte, keep bool) ([]byte, error) {
	out, _, err := run(n, src, Coerce|Prune, Options{Storage: true, kept: keep}, true)
	if err != nil {
		return nil, err
	}
	return FillDefaults(n, out)
}

// FillDefaults fills the defaults into a value that n describes.
func FillDefaults(n *plan.Node, src []byte) ([]byte, error) {
	out, _, err := run(n, src, Default, Options{}, false)
	return out, err
}

// run performs some steps on a value that is not a whole resource. The result
// is canonical, or, with keepNumbers, fit to be read again.
func run(n *plan.Node, src []byte, steps Steps, o Options, keepNumbers bool) ([]byte, Changes, error) {
	d, err := jsondoc.Parse(src, o.Limits)
	if err != nil {
		return nil, 0, err
	}
	defer d.Release()
	w := newWalker(d, steps, o)
	defer w.release()
	w.track = true
	w.path = append(w.path, o.at...)
	w.out.KeepNumbers = keepNumbers
	if err := w.value(jsondoc.Root, n, o.kept); err != nil {
		return nil, 0, err
	}
	return w.finish(), w.changes, nil
}

// rootError returns what upstream would refuse the resource for, given that
// the walk failed with err: it reads kind, apiVersion and the resource's own
// metadata before it looks into embedded resources.
func (w *walker) rootError(err error) error {
	for _, field := range [...]string{"kind", "apiVersion"} {
		if v, ok := w.d.Get(jsondoc.Root, field); ok && w.d.Kind(v) != jsondoc.String {
			x := w.d.Any(v)
			return &Error{Path: field, Offset: w.d.Offset(v),
				Err: fmt.Errorf(".%s accessor error: %v is of the type %T, expected string", field, x, x)}
		}
	}
	if v, ok := w.d.Get(jsondoc.Root, "metadata"); ok {
		if _, err := readMetadata(w.d, v, w.storage, nil); err != nil {
			return &Error{Path: "metadata", Offset: w.d.Offset(v), Err: err}
		}
	}
	if v, ok := w.d.Get(jsondoc.Root, "apiVersion"); ok && severalSlashes(w.d, v) {
		return &Error{Path: "apiVersion", Offset: w.d.Offset(v), Err: fmt.Errorf("unexpected GroupVersion string: %v", w.d.Text(v))}
	}
	return err
}

// severalSlashes reports whether an apiVersion has more than one slash.
func severalSlashes(d *jsondoc.Doc, v jsondoc.Value) bool {
	if d.Plain(v) {
		return bytes.Count(d.Raw(v), []byte{'/'}) > 1
	}
	return strings.Count(d.Text(v), "/") > 1
}
