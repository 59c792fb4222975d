package exec

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

var metadataKey = []byte("metadata")

// errTypeMeta stands for what rootError says about apiVersion and kind.
var errTypeMeta = errors.New("apiVersion or kind is invalid")

// root writes a whole resource.
func (w *walker) root(n *plan.Node) error {
	if err := w.object(jsondoc.Root, n, n.Flags&plan.PreserveUnknown != 0, rootResource); err != nil {
		return w.rootError(err)
	}
	return nil
}

// rootMember writes apiVersion, kind or metadata of the resource itself,
// whatever the schema says about them.
func (w *walker) rootMember(k jsondoc.Value, key []byte, first *bool) error {
	v := k + 1
	w.member(k, first)
	if len(key) == len("metadata") {
		return w.metadata(v, rootResource)
	}
	if w.d.Kind(v) != jsondoc.String || len(key) == len("apiVersion") && severalSlashes(w.d, v) {
		return errTypeMeta
	}
	w.out.Scalar(v)
	return nil
}

// metaMember writes apiVersion, kind or metadata of an embedded resource.
// child is what the schema says about it, if anything.
func (w *walker) metaMember(k jsondoc.Value, key []byte, child *plan.Node, first *bool) error {
	v := k + 1
	nullable := child == nil || child.Flags&plan.Nullable != 0
	if w.d.Kind(v) == jsondoc.Null && !nullable && child.Flags&plan.HasDefault == 0 && w.steps&DropNulls != 0 {
		w.note(NullDropped, k, key, "null is not allowed here and there is no default")
		return nil
	}
	if string(key) == "metadata" {
		w.member(k, first)
		w.push(step{key: key})
		defer w.pop()
		return w.embeddedMetadata(v, child)
	}
	if w.d.Kind(v) == jsondoc.String {
		w.member(k, first)
		w.out.Scalar(v)
		return nil
	}
	if !w.storage {
		w.push(step{key: key})
		at := w.path.field()
		w.pop()
		return &Error{Path: at, Offset: w.offset(v), Err: field.Invalid(field.NewPath(at), w.d.Any(v), "must be a string")}
	}
	w.note(Coerced, k, key, "must be a string; the stored value is not, and is dropped")
	if child != nil && child.Flags&plan.HasDefault != 0 && w.steps&Default != 0 {
		w.member(k, first)
		w.out.Insert(child.Rare.Default)
		w.note(Defaulted, k, key, "the field is missing; its default is filled in")
	}
	return nil
}

// embeddedMetadata writes the metadata of an embedded resource. When the
// schema specifies fields of it, nulls are dropped by that schema before
// ObjectMeta sees them, and defaults are filled in after.
func (w *walker) embeddedMetadata(v jsondoc.Value, child *plan.Node) error {
	plain := child == nil || child.Props == nil && child.Additional == nil && child.Items == nil
	if k := w.d.Kind(v); plain || k != jsondoc.Object && k != jsondoc.Null || !w.staged(v, child) {
		return w.metadata(v, embeddedResource)
	}
	o := Options{Storage: w.storage, Limits: jsondoc.Limits{MaxDepth: 1 << 20}}
	src := w.d.AppendCanonical(nil, v)
	out := w.d.Raw(v)
	var err error
	if w.steps&DropNulls != 0 && w.containsNull(v) {
		if out, err = w.withoutNulls(v, child, o); err != nil {
			return err
		}
	}
	if out, err = w.derivedMetadata(out, v); err != nil {
		return err
	}
	before := out
	if out, _, err = run(child, out, w.steps&Default, o, false); err != nil {
		return err
	}
	if !bytes.Equal(out, before) {
		w.note(Defaulted, v, nil, "defaults of metadata fields were filled in")
	}
	if bytes.Equal(out, src) {
		w.out.Value(v)
	} else {
		w.out.Bytes(out)
	}
	return nil
}

// withoutNulls drops the nulls of metadata by its schema. What it returns has no duplicate keys
// either, so they are noted here: the steps that follow do not see them.
func (w *walker) withoutNulls(v jsondoc.Value, child *plan.Node, o Options) ([]byte, error) {
	if w.rec != nil {
		o.Record, o.at = new(Recorder), w.path
	}
	out, changes, err := run(child, w.d.Raw(v), DropNulls, o, true)
	if err != nil {
		return nil, err
	}
	w.changes |= changes & Duplicated
	if w.rec != nil {
		for _, x := range o.Record.Changes {
			if x.What == Duplicated && !w.rec.full() {
				x.Offset = w.offset(v)
				w.rec.add(x)
			}
		}
	}
	if changes&NullDropped != 0 {
		w.note(NullDropped, v, nil, "nulls that are not allowed were dropped")
	}
	return out, nil
}

// staged reports whether the schema of metadata has anything to do with v.
func (w *walker) staged(v jsondoc.Value, child *plan.Node) bool {
	if child.Flags&plan.DefaultsBelow != 0 && w.steps&Default != 0 {
		return true
	}
	return w.steps&DropNulls != 0 && w.containsNull(v)
}

func (w *walker) containsNull(v jsondoc.Value) bool {
	end := w.d.Next(v)
	for c := v; c < end; c++ {
		if w.d.Kind(c) == jsondoc.Null {
			return true
		}
	}
	return false
}

// derivedMetadata coerces metadata that is not in the original document.
func (w *walker) derivedMetadata(src []byte, at jsondoc.Value) ([]byte, error) {
	d, err := jsondoc.Parse(src, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	sub := newWalker(d, w.steps, Options{Storage: w.storage, Record: w.rec})
	defer sub.release()
	sub.track = w.track
	sub.path = append(sub.path[:0], w.path...)
	sub.base = w.offset(at)
	err = sub.metadata(jsondoc.Root, embeddedResource)
	w.changes |= sub.changes
	if err != nil {
		return nil, err
	}
	return sub.finish(), nil
}

// metadata writes v as a round trip through ObjectMeta leaves it. The path of
// the walk is that of the metadata, except at the root, where it is empty.
func (w *walker) metadata(v jsondoc.Value, of role) error {
	if of == rootResource {
		w.push(step{key: metadataKey})
		defer w.pop()
	}
	saved, changes := w.out, w.changes
	recorded := 0
	if w.rec != nil {
		recorded = len(w.rec.Changes)
	}
	if w.objectMeta(v, of) {
		return nil
	}
	w.out, w.changes = saved, changes
	if w.rec != nil {
		w.rec.Changes = w.rec.Changes[:recorded]
	}
	return w.unusualMetadata(v, of)
}

// unusualMetadata does the round trip for real.
func (w *walker) unusualMetadata(v jsondoc.Value, of role) error {
	note := func(what Changes, name, detail string) {
		w.changes |= what
		if w.rec != nil && !w.rec.full() {
			w.rec.add(Change{What: what, Path: w.path.field() + "." + name, Offset: w.offset(v), Detail: detail})
		}
	}
	meta, err := readMetadata(w.d, v, w.storage, note)
	switch {
	case err == nil:
	case of == rootResource:
		return &Error{Path: "metadata", Offset: w.offset(v), Err: err}
	case w.storage:
		// Embedded metadata that is no object at all stays for validation to refuse.
		w.out.Value(v)
		return nil
	default:
		at := w.path.field()
		return &Error{Path: at, Offset: w.offset(v), Err: field.Invalid(field.NewPath(at), w.d.Any(v), err.Error())}
	}
	if of == rootResource && w.storage && meta.Generation == 0 {
		meta.Generation = 1
		note(Coerced, "generation", "set to 1, because the stored object has no generation")
	}
	out, err := encodeMetadata(meta)
	if err != nil {
		return &Error{Path: w.path.field(), Offset: w.offset(v), Err: err}
	}
	if bytes.Equal(out, w.d.AppendCanonical(nil, v)) {
		w.out.Value(v)
		return nil
	}
	w.note(Coerced, v, nil, "converted to the form of ObjectMeta")
	w.out.Bytes(out)
	return nil
}

// CoerceMetadata returns what becomes of the JSON of a metadata field when it
// is read from storage. Defaults inside metadata are prepared with it.
func CoerceMetadata(src []byte) ([]byte, error) {
	d, err := jsondoc.Parse(src, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	if d.Kind(jsondoc.Root) != jsondoc.Object {
		return nil, errors.New("metadata must be an object")
	}
	meta, err := convertMetadata(d.AppendCanonical(nil, jsondoc.Root), true, nil)
	if err != nil {
		return nil, err
	}
	return encodeMetadata(meta)
}
