package exec

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// DefaultResult is upstream's errors about a default when a CRD is created or
// updated. As upstream, it always has unknown fields, and only the first of these:
// metadata that does not decode, invalid metadata, invalid values.
type DefaultResult struct {
	Unknown  *Violation  // the default has fields that its schema does not specify
	Metadata []Violation // errors of apiVersion, kind and metadata in it
	Values   []Violation // errors of other values in it
	Value    []byte      // what the result is about: without duplicate keys, metadata coerced, numbers as written
}

// defaultKey is where paths of violations in a default start.
var defaultKey = []byte("default")

// ValidateDefault validates a default outside metadata. The plan is one that was
// lowered for defaults. Paths begin with "default"; offsets are those in src,
// or 0 if a part of it was rewritten.
func ValidateDefault(n *plan.Node, src []byte) (DefaultResult, error) {
	var result DefaultResult
	in, err := readDefault(src)
	if err != nil {
		return result, err
	}
	defer func() { in.d.Release() }()
	unknown := unspecified(in.d, jsondoc.Root, n, false)
	if n.Flags&plan.EmbeddedBelow != 0 {
		err := in.coerce(n)
		if fault := coercionFault(err); fault != nil {
			result.Metadata = []Violation{*fault}
		} else if err != nil {
			return result, err
		} else {
			result.Metadata = inspectAt(in.d, n, plan.EmbeddedBelow, path{{key: defaultKey}})
		}
	}
	if unknown {
		// Upstream shows the default as it is after the steps that follow.
		result.Unknown = &Violation{Type: field.ErrorTypeInvalid, Path: "default", BadValue: in.whole(), Detail: "must not have unknown fields"}
	}
	if len(result.Metadata) == 0 {
		result.Values = explainDefault(in.d, n)
	}
	if in.rewritten {
		for _, list := range [][]Violation{result.Metadata, result.Values} {
			for i := range list {
				list[i].Offset = 0
			}
		}
	}
	result.Value = in.text
	return result, nil
}

// ValidateMetaDefault validates a default inside the metadata or type information
// of a resource. resource is the JSON of a resource that has only the default.
func ValidateMetaDefault(n *plan.Node, src, resource []byte) (DefaultResult, error) {
	var result DefaultResult
	whole, err := readDefault(resource)
	if err != nil {
		return result, err
	}
	defer func() { whole.d.Release() }()
	in, err := readDefault(src)
	if err != nil {
		return result, err
	}
	defer func() { in.d.Release() }()
	result.Value = in.text

	fault := ""
	if err := whole.coerce(&anyResource); err != nil {
		fault = err.Error()
	} else {
		var errs field.ErrorList
		for _, x := range embeddedErrors(whole.d, jsondoc.Root, nil) {
			errs = append(errs, x.FieldError())
		}
		if len(errs) > 0 {
			fault = errs.ToAggregate().Error()
		}
	}
	if fault != "" {
		result.Metadata = []Violation{{Type: field.ErrorTypeInvalid, Path: "default", BadValue: in.whole(),
			Detail: "must result in valid metadata: " + fault}}
		return result, nil
	}
	result.Values = explainDefault(in.d, n)
	return result, nil
}

// anyResource describes a resource about which nothing else is known.
var anyResource = plan.Node{Accepts: plan.AnyKind, Flags: plan.Embedded | plan.EmbeddedBelow | plan.PreserveUnknown}

// defaultDoc is a default that is being validated.
type defaultDoc struct {
	d         *jsondoc.Doc
	text      []byte
	rewritten bool // text is not what the schema has
}

// readDefault parses a default and removes duplicate keys.
func readDefault(src []byte) (defaultDoc, error) {
	d, err := jsondoc.Parse(src, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return defaultDoc{}, err
	}
	in := defaultDoc{d: d, text: src}
	w := newWalker(d, 0, Options{})
	w.out.KeepNumbers = true
	w.verbatim(jsondoc.Root)
	if w.changes&Duplicated != 0 {
		err = in.replace(w.finish())
	}
	w.release()
	return in, err
}

// whole returns the default as a bad value. Those that are no scalars are shown
// as JSON anyway.
func (in *defaultDoc) whole() any {
	if in.d.Kind(jsondoc.Root) < jsondoc.Array {
		return in.d.Any(jsondoc.Root)
	}
	return json.RawMessage(in.d.AppendCanonical(nil, jsondoc.Root))
}

// replace goes on with another text.
func (in *defaultDoc) replace(text []byte) error {
	d, err := jsondoc.Parse(text, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return err
	}
	in.d.Release()
	*in = defaultDoc{d: d, text: text, rewritten: true}
	return nil
}

// coerce brings embedded metadata into the form of ObjectMeta.
func (in *defaultDoc) coerce(n *plan.Node) error {
	w := newWalker(in.d, Coerce, Options{})
	defer w.release()
	w.track = true
	w.out.KeepNumbers = true
	if n != &anyResource {
		w.path = append(w.path, step{key: defaultKey})
	}
	if err := w.value(jsondoc.Root, n, false); err != nil {
		return err
	}
	if w.changes == 0 {
		return nil
	}
	return in.replace(w.finish())
}

// coercionFault returns upstream's error about metadata that does not decode.
func coercionFault(err error) *Violation {
	var refused *Error
	var fault *field.Error
	if !errors.As(err, &refused) || !errors.As(refused.Err, &fault) {
		return nil
	}
	return &Violation{Type: fault.Type, Path: fault.Field, BadValue: fault.BadValue, Detail: fault.Detail,
		Keyword: "metadata", At: fault.Field, Offset: refused.Offset}
}

// explainDefault returns what the values of a default violate.
func explainDefault(d *jsondoc.Doc, n *plan.Node) []Violation {
	e := explainer{d: d, exact: true}
	e.value(jsondoc.Root, n, pairing{})
	list := e.unique()
	for i := range list {
		if list[i].Path == rootPath {
			list[i].Path = "default"
		} else {
			list[i].Path = "default." + list[i].Path
		}
	}
	return list
}

// unspecified reports whether pruning v would remove anything. Upstream prunes
// neither type information nor metadata of embedded resources, and passes on to
// items, and to nothing else, that unknown fields are preserved.
func unspecified(d *jsondoc.Doc, v jsondoc.Value, n *plan.Node, keep bool) bool {
	kind := d.Kind(v)
	if kind < jsondoc.Array {
		return false
	}
	if n == nil && keep {
		return false
	}
	keep = keep || n != nil && n.Flags&plan.PreserveUnknown != 0
	end := d.Next(v)
	if kind == jsondoc.Array {
		var items *plan.Node
		if n != nil {
			items = n.Items
		}
		for c := v + 1; c < end; c = d.Next(c) {
			if unspecified(d, c, items, keep) {
				return true
			}
		}
		return false
	}
	if n == nil {
		return end > v+1
	}
	for k := v + 1; k < end; k = d.Next(k + 1) {
		key := d.Key(k)
		if n.Flags&plan.Embedded != 0 && isMetaField(key) {
			continue
		}
		child := n.Additional
		if rank := n.Props.Lookup(key); rank >= 0 {
			child = n.Props.At(rank).Node
		} else if n.Flags&plan.Additional == 0 {
			if !keep {
				return true
			}
			continue
		}
		if unspecified(d, k+1, child, false) {
			return true
		}
	}
	return false
}
