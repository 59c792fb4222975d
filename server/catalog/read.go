package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/server/object"
	"k8s.io/apimachinery/pkg/types"
)

// newEntry reads a definition as it came from storage.
func newEntry(o *object.Object) (*Entry, error) {
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("definition %q: resourceVersion %q is not a revision", o.GetName(), o.GetResourceVersion())
	}
	data := o.JSON()
	d, err := crd.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("definition %q: %w", o.GetName(), err)
	}
	e := &Entry{
		Name:            strings.Clone(o.GetName()),
		UID:             types.UID(strings.Clone(string(o.GetUID()))),
		Generation:      o.GetGeneration(),
		ResourceVersion: strings.Clone(o.GetResourceVersion()),
		Revision:        revision,
		Deleting:        !o.GetDeletionTimestamp().IsZero(),
		Finalizers:      shareAll(o.GetFinalizers()),

		Group: share(d.Group),
		Names: Names{
			Plural: strings.Clone(d.Plural), Singular: strings.Clone(d.Singular),
			Kind: strings.Clone(d.Kind), ListKind: strings.Clone(d.ListKind),
			ShortNames: shareAll(d.ShortNames), Categories: shareAll(d.Categories),
		},
		Namespaced:            d.Namespaced,
		PreserveUnknownFields: d.PreserveUnknownFields,
		packed:                pack(data),
		size:                  len(data),
	}
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return nil, fmt.Errorf("definition %q: %w", o.GetName(), err)
	}
	defer doc.Release()
	r := reader{doc}
	r.status(e, r.at(jsondoc.Root, "status"))
	r.spec(e, d, r.at(jsondoc.Root, "spec"))
	return e, nil
}

// share returns one copy for all equal strings: there are few groups, versions
// and categories for many definitions.
func share(s string) string { return unique.Make(s).Value() }

func shareAll(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = share(s)
	}
	return out
}

// place is a value of the document, or none.
type place struct {
	v  jsondoc.Value
	ok bool
}

// reader reads what crd.Parse leaves out, as leniently: what has the wrong
// type counts as absent.
type reader struct{ doc *jsondoc.Doc }

func (r reader) at(v jsondoc.Value, name string) place { return r.member(place{v, true}, name) }

func (r reader) member(p place, name string) place {
	if !p.ok || r.doc.Kind(p.v) != jsondoc.Object {
		return place{}
	}
	m, ok := r.doc.Get(p.v, name)
	return place{m, ok && r.doc.Kind(m) != jsondoc.Null}
}

func (r reader) text(p place, name string) string {
	if m := r.member(p, name); m.ok && r.doc.Kind(m.v) == jsondoc.String {
		return r.doc.Text(m.v)
	}
	return ""
}

func (r reader) texts(p place, name string) []string {
	var list []string
	for _, item := range r.items(r.member(p, name)) {
		if r.doc.Kind(item.v) == jsondoc.String {
			list = append(list, r.doc.Text(item.v))
		}
	}
	return shareAll(list)
}

func (r reader) items(p place) []place {
	if !p.ok || r.doc.Kind(p.v) != jsondoc.Array {
		return nil
	}
	list := make([]place, 0, r.doc.Len(p.v))
	for _, item := range r.doc.Items(p.v) {
		list = append(list, place{item, true})
	}
	return list
}

// raw returns the bytes of a value as written, which in storage are canonical.
func (r reader) raw(p place) []byte {
	if !p.ok {
		return nil
	}
	return r.doc.Raw(p.v)
}

func (r reader) status(e *Entry, status place) {
	names := r.member(status, "acceptedNames")
	e.Accepted = Names{
		Plural: r.text(names, "plural"), Singular: r.text(names, "singular"),
		Kind: r.text(names, "kind"), ListKind: r.text(names, "listKind"),
		ShortNames: r.texts(names, "shortNames"), Categories: r.texts(names, "categories"),
	}
	if e.Accepted.Equal(&e.Names) {
		e.Accepted = e.Names // the same strings: nearly all definitions have what they ask for
	}
	e.StoredVersions = r.texts(status, "storedVersions")
	if m := r.member(status, "observedGeneration"); m.ok && r.doc.Kind(m.v) == jsondoc.Number {
		e.ObservedGeneration, _ = r.doc.Int64(m.v)
	}
	for _, c := range r.items(r.member(status, "conditions")) {
		isTrue := r.text(c, "status") == "True"
		switch r.text(c, "type") {
		case "NamesAccepted":
			e.NamesAccepted = isTrue
		case "Terminating":
			e.Terminating = isTrue
		case "Established":
			e.Established = isTrue
			if t, err := time.Parse(time.RFC3339, r.text(c, "lastTransitionTime")); err == nil {
				e.EstablishedAt = t
			}
		}
	}
}

func (r reader) spec(e *Entry, d *crd.Definition, spec place) {
	conversion := r.member(spec, "conversion")
	e.Conversion = share(r.text(conversion, "strategy"))
	if e.Conversion == "" {
		e.Conversion = "None"
	}
	e.Versions = make([]Version, len(d.Versions))
	for i, v := range d.Versions {
		e.Versions[i] = Version{Name: share(v.Name), Served: v.Served, Storage: v.Storage, Deprecated: v.Deprecated, Status: v.Status, Scale: v.Scale}
		if v.Storage && e.StorageVersion == "" {
			e.StorageVersion = e.Versions[i].Name
		}
	}
	written := r.items(r.member(spec, "versions"))
	for i := range e.Versions {
		v := &e.Versions[i]
		if d.Versions[i].Schema != nil {
			v.SchemaHash = sha256.Sum256(d.Versions[i].Schema)
		}
		var in place // absent in v1beta1's short form
		if i < len(written) {
			in = written[i]
		}
		if m := r.member(in, "deprecationWarning"); m.ok && r.doc.Kind(m.v) == jsondoc.String {
			s := r.doc.Text(m.v)
			v.DeprecationWarning = &s
		}
		selectable := r.member(in, "selectableFields")
		v.SelectableFields = len(r.items(selectable)) > 0

		h := newHasher()
		h.resource(e)
		h.text(v.Name)
		h.flags(v.Served, v.Deprecated)
		h.text(warning(v))
		h.bytes(v.SchemaHash[:])
		h.bytes(r.raw(r.member(in, "subresources")))
		h.bytes(r.raw(selectable))
		v.Hash = h.sum()

		h = newHasher()
		h.resource(e)
		h.text(v.Name)
		h.text(e.StorageVersion)
		h.flags(v.Served)
		h.bytes(r.raw(selectable))
		h.bytes(r.raw(r.member(in, "additionalPrinterColumns")))
		h.bytes(r.raw(conversion))
		v.StorageHash = h.sum()
	}
	h := newHasher()
	h.names(&e.Accepted)
	h.bytes(r.raw(spec))
	e.SpecHash = h.sum()
}

func warning(v *Version) string {
	if v.DeprecationWarning == nil {
		return ""
	}
	return *v.DeprecationWarning
}

// hasher writes every part with its length before it, so that no two
// sequences of parts have the same bytes.
type hasher struct{ h hash.Hash }

func newHasher() hasher { return hasher{sha256.New()} }

func (h hasher) bytes(b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	_, _ = h.h.Write(n[:])
	_, _ = h.h.Write(b)
}

func (h hasher) text(s string) { h.bytes([]byte(s)) }

func (h hasher) flags(flags ...bool) {
	b := make([]byte, len(flags))
	for i, f := range flags {
		if f {
			b[i] = 1
		}
	}
	h.bytes(b)
}

func (h hasher) names(n *Names) {
	for _, s := range []string{n.Plural, n.Singular, n.Kind, n.ListKind} {
		h.text(s)
	}
	for _, list := range [][]string{n.ShortNames, n.Categories} {
		h.text(strconv.Itoa(len(list)))
		for _, s := range list {
			h.text(s)
		}
	}
}

func (h hasher) resource(e *Entry) {
	h.text(e.Group)
	h.names(&e.Names)
	h.names(&e.Accepted)
	h.flags(e.Namespaced, e.PreserveUnknownFields)
}

func (h hasher) sum() (s Hash) {
	h.h.Sum(s[:0])
	return s
}
