package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// newEntry reads a CRD as it came from storage.
func newEntry(o *object.Object) (*Entry, error) {
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("CRD %q: resourceVersion %q is not a revision", o.GetName(), o.GetResourceVersion())
	}
	data := o.JSON()
	d, err := crd.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("CRD %q: %w", o.GetName(), err)
	}
	defer d.Release()
	e := &Entry{
		Name:            strings.Clone(o.GetName()),
		UID:             types.UID(strings.Clone(string(o.GetUID()))),
		Generation:      o.GetGeneration(),
		ResourceVersion: strings.Clone(o.GetResourceVersion()),
		Revision:        revision,
		Deleting:        !o.GetDeletionTimestamp().IsZero(),
		Finalizers:      shareAll(o.GetFinalizers()),

		Group:                 share(d.Group),
		Names:                 namesOf(&d.Names),
		Namespaced:            d.Namespaced,
		PreserveUnknownFields: d.PreserveUnknownFields,
		packed:                pack(data),
		size:                  len(data),
	}
	e.status(&d.Status)
	e.spec(d)
	return e, nil
}

func namesOf(n *crd.Names) Names {
	return Names{
		Plural: n.Plural, Singular: n.Singular, Kind: n.Kind, ListKind: n.ListKind,
		ShortNames: shareAll(n.ShortNames), Categories: shareAll(n.Categories),
	}
}

// share returns one copy for all equal strings: there are few groups, versions
// and categories for many CRDs.
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

func (e *Entry) status(s *crd.Status) {
	e.Accepted = namesOf(&s.AcceptedNames)
	if e.Accepted.Equal(&e.Names) {
		e.Accepted = e.Names // the same strings: nearly all CRDs have what they ask for
	}
	e.StoredVersions = shareAll(s.StoredVersions)
	e.ObservedGeneration = s.ObservedGeneration
	for _, c := range s.Conditions {
		isTrue := c.Status == "True"
		switch c.Type {
		case "NamesAccepted":
			e.NamesAccepted = isTrue
		case "Terminating":
			e.Terminating = isTrue
		case "Established":
			e.Established = isTrue
			if !c.LastTransitionTime.IsZero() {
				e.EstablishedAt = c.LastTransitionTime
			}
		}
	}
}

func (e *Entry) spec(d *crd.CRD) {
	e.Conversion = share(cmp.Or(d.Conversion.Strategy, "None"))
	e.Versions = make([]Version, len(d.Versions))
	if v := d.StorageVersion(); v != nil {
		e.StorageVersion = share(v.Name)
	}
	for i := range d.Versions {
		from := &d.Versions[i]
		v := &e.Versions[i]
		*v = Version{
			Name: share(from.Name), Served: from.Served, Storage: from.Storage, Deprecated: from.Deprecated,
			Status: from.Status, Scale: from.Scale != nil, SelectableFields: len(from.SelectableFields) > 0,
		}
		if from.Schema != nil {
			v.SchemaHash = sha256.Sum256(from.Schema)
		}
		h := newHasher()
		h.resource(e)
		h.text(v.Name)
		h.flags(v.Served, v.Deprecated)
		h.text(ptr.Deref(from.DeprecationWarning, ""))
		h.bytes(v.SchemaHash[:])
		h.subresources(from)
		h.selectable(from)
		v.Hash = h.sum()

		h = newHasher()
		h.resource(e)
		h.text(v.Name)
		h.text(e.StorageVersion)
		h.flags(v.Served)
		h.selectable(from)
		h.columns(from)
		h.conversion(&d.Conversion)
		h.rules(d)
		h.indexes(d)
		v.StorageHash = h.sum()
	}
	h := newHasher()
	h.names(&e.Accepted)
	doc := crdtree.Doc(d)
	if spec, ok := doc.Get(jsondoc.Root, "spec"); ok {
		h.bytes(doc.Raw(spec)) // in storage it is canonical
	}
	h.rules(d)
	e.SpecHash = h.sum()
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

func (h hasher) count(n int) { h.text(strconv.Itoa(n)) }

// optional tells a text that is left out from an empty one.
func (h hasher) optional(s *string) {
	h.flags(s != nil)
	if s != nil {
		h.text(*s)
	}
}

func (h hasher) subresources(v *crd.Version) {
	h.flags(v.Status, v.Scale != nil)
	if v.Scale != nil {
		h.text(v.Scale.SpecReplicasPath)
		h.text(v.Scale.StatusReplicasPath)
		h.optional(v.Scale.LabelSelectorPath)
	}
}

func (h hasher) selectable(v *crd.Version) {
	h.count(len(v.SelectableFields))
	for i := range v.SelectableFields {
		h.text(v.SelectableFields[i].JSONPath)
	}
}

func (h hasher) columns(v *crd.Version) {
	h.count(len(v.Columns))
	for i := range v.Columns {
		c := &v.Columns[i]
		for _, s := range []string{c.Name, c.Type, c.Format, c.Description, c.JSONPath} {
			h.text(s)
		}
		h.count(int(c.Priority))
	}
}

func (h hasher) conversion(c *crd.Conversion) {
	h.text(c.Strategy)
	h.count(len(c.ReviewVersions))
	for _, v := range c.ReviewVersions {
		h.text(v)
	}
	w := c.Webhook
	if h.flags(w != nil); w == nil {
		return
	}
	h.optional(w.URL)
	h.bytes(w.CABundle)
	if h.flags(w.Service != nil); w.Service != nil {
		h.text(w.Service.Namespace)
		h.text(w.Service.Name)
		h.optional(w.Service.Path)
		h.count(int(w.Service.Port))
	}
}

// rules are in an annotation: changing them does not change the generation of the CRD.
func (h hasher) rules(d *crd.CRD) {
	if rules, ok := d.Annotations[conversion.Annotation]; ok {
		h.text(rules)
	}
}

// indexes are in an annotation, too.
func (h hasher) indexes(d *crd.CRD) {
	if indexes, ok := d.Annotations[IndexesAnnotation]; ok {
		h.text("indexes")
		h.text(indexes)
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
