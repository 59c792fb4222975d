package object

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// What an object's places are of: first members of the object itself, then of
// its metadata, both sorted.
const (
	atVersion = iota
	atKind
	atMetadata

	atDeletion
	atGeneration
	atLabels
	atName
	atNamespace
	atResourceVersion
	atUID

	placeCount
)

var (
	topNames  = []string{"apiVersion", "kind", "metadata"}
	metaNames = []string{"deletionTimestamp", "generation", "labels", "name", "namespace", "resourceVersion", "uid"}
)

// Object is one object of a resource: its JSON, and what has been read of it.
// The zero Object is empty. Copies of the struct share everything: only
// DeepCopyObject's result may be changed independently.
//
// It is 128 bytes long. A watch cache holds millions of them.
type Object struct {
	raw   []byte // canonical JSON as given; what follows overrides it
	extra *extra // nil for most objects
	stamp any

	types *metav1.TypeMeta   // apiVersion and kind, if they have been changed
	meta  *metav1.ObjectMeta // metadata but its resourceVersion, if it has been changed

	// The resourceVersion is no part of what is stored and is set on every
	// object that is loaded: that must cost neither decoding nor copying.
	resourceVersion string
	versioned       bool // resourceVersion overrides that of raw
	withheld        bool // the managed fields are not shown

	metaEnd int32
	at      [placeCount]int32
}

// extra is what few objects have. It is not changed, but replaced: copies share it.
type extra struct {
	source []byte       // what storage held
	index  *jsondoc.Doc // of raw, of an object that is on its way into storage
	typed  any          // the schema whose types all values have; nil if none is known
	normal any          // the schema by which a request was normalized to raw, but for metadata; nil if to something else
}

var (
	_ runtime.Object            = (*Object)(nil)
	_ metav1.Object             = (*Object)(nil)
	_ metav1.ObjectMetaAccessor = (*Object)(nil)
)

// The handlers of k8s.io/apiserver compare whole objects, by reflection, for
// one purpose: an update that changes nothing but the times of managed fields
// shall not be written. Reflection cannot see into an Object.
func init() {
	err := equality.Semantic.AddFunc(func(a, b Object) bool { return a.equalButForTimes(&b) })
	if err != nil {
		panic(err)
	}
}

// New returns an object that has nothing but a kind.
func New(gvk schema.GroupVersionKind) *Object {
	o := &Object{}
	o.SetGroupVersionKind(gvk)
	return o
}

// FromJSON reads the canonical JSON of a whole object, as Normalize leaves it.
// The bytes are kept and must not change.
//
// It looks at brackets, quotes, and the order of the keys of the object and of
// its metadata; that all the rest is canonical, and JSON, is for the caller to
// know.
func FromJSON(canonical []byte) (*Object, error) {
	o := &Object{raw: canonical}
	if err := o.scan(); err != nil {
		return nil, err
	}
	return o, nil
}

// scan finds the places in raw.
func (o *Object) scan() error {
	b := o.raw
	if len(b) > math.MaxInt32 {
		return fmt.Errorf("an object of %d bytes is too large", len(b))
	}
	if len(b) == 0 || b[0] != '{' {
		return errNotObject
	}
	o.at, o.metaEnd = [placeCount]int32{}, 0
	end, err := locate(b, 0, topNames, o.at[:atMetadata+1])
	if err != nil {
		return err
	}
	if end != len(b) {
		return errNotCanonical
	}
	for i := atVersion; i <= atKind; i++ {
		if at := o.at[i]; at > 0 {
			if b[at] != '"' {
				return fmt.Errorf("%s is not a string", topNames[i])
			}
		}
	}
	at := int(o.at[atMetadata])
	if at <= 0 {
		return nil
	}
	if b[at] != '{' {
		o.metaEnd = int32(valueEnd(b, at))
		if b[at] != 'n' {
			return errors.New("metadata is not an object")
		}
		return nil
	}
	end, err = locate(b, at, metaNames, o.at[atDeletion:])
	if err != nil {
		return err
	}
	o.metaEnd = int32(end)
	return o.checkMetadata()
}

// checkMetadata checks the types of what is read without being decoded first.
// Null means the same as nothing.
func (o *Object) checkMetadata() error {
	for i, name := range metaNames {
		at := o.at[atDeletion+i]
		if at <= 0 || o.raw[at] == 'n' {
			continue
		}
		first, kind := `"`, "a string"
		switch atDeletion + i {
		case atLabels:
			first, kind = "{", "an object"
		case atGeneration:
			first, kind = "-0123456789", "a number"
		}
		if strings.IndexByte(first, o.raw[at]) < 0 {
			return fmt.Errorf("metadata.%s is not %s", name, kind)
		}
	}
	return nil
}

// text returns the string at a place, "" if there is none.
func (o *Object) text(place int) string {
	at := int(o.at[place])
	if at <= 0 || o.raw[at] != '"' {
		return ""
	}
	return textOf(o.raw[at:stringEnd(o.raw, at)])
}

// JSON returns the object as canonical JSON. The bytes may be shared and must
// not be changed.
func (o *Object) JSON() []byte {
	if o.changed() {
		return o.AppendJSON(make([]byte, 0, o.sizeHint()))
	}
	return o.base()
}

// Settle writes what has been set into the bytes, so that JSON need not encode it again and
// again. The object must not be shared.
func (o *Object) Settle() {
	if !o.changed() || o.withheld {
		return
	}
	settled, err := FromJSON(o.JSON())
	if err != nil {
		return // what AppendJSON writes can be read
	}
	settled.stamp = o.stamp
	settled.extra = o.edited(settled.raw, "metadata", true)
	if o.extra != nil && o.extra.source != nil {
		settled.SetSource(o.extra.source)
	}
	*o = *settled
}

// Size is about how many bytes the object takes in memory and as JSON. It does
// not encode.
func (o *Object) Size() int { return o.sizeHint() }

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) { return o.JSON(), nil }

// UnmarshalJSON implements json.Unmarshaler, for JSON of any form.
func (o *Object) UnmarshalJSON(data []byte) error {
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return err
	}
	defer doc.Release()
	if doc.Kind(jsondoc.Root) != jsondoc.Object {
		return errNotObject
	}
	p, err := FromJSON(doc.AppendCanonical(make([]byte, 0, len(data)), jsondoc.Root))
	if err == nil {
		*o = *p
	}
	return err
}

// SetIndex gives the object the index of its bytes, which must be canonical. Callers must not release it. typed is the
// schema whose types all values have, nil if that is not known; normal the one that a request was normalized by.
func (o *Object) SetIndex(d *jsondoc.Doc, typed, normal any) {
	o.extra = &extra{index: d, typed: typed, normal: normal}
}

// Normal returns the schema that the object was normalized by when a client sent it, nil if it has been changed since in
// more than metadata. Normalizing it once more would change nothing.
func (o *Object) Normal() any {
	if o.extra == nil || o.extra.index == nil || o.types != nil || !o.extra.index.Indexes(o.raw) {
		return nil
	}
	return o.extra.normal
}

// Index returns the index of the object's JSON, nil if it is not known: the JSON has to be parsed.
func (o *Object) Index() (d *jsondoc.Doc, typed any) {
	if o.extra == nil || o.extra.index == nil || o.changed() || !o.extra.index.Indexes(o.raw) {
		return nil, nil
	}
	return o.extra.index, o.extra.typed
}

// edited returns what is known of other bytes, in which one member is another. The types of that member
// are the schema's if typed is set.
func (o *Object) edited(raw []byte, member string, typed bool) *extra {
	if o.extra == nil || o.extra.index == nil || o.types != nil || !o.extra.index.Indexes(o.raw) {
		return nil
	}
	d, ok := o.extra.index.Edited(raw, member)
	if !ok {
		return nil
	}
	e := &extra{index: d}
	if typed {
		e.typed = o.extra.typed
	}
	if member == "metadata" {
		e.normal = o.extra.normal
	}
	return e
}

// Source is what storage held, if normalizing has changed it; otherwise nil.
func (o *Object) Source() []byte {
	if o.extra == nil {
		return nil
	}
	return o.extra.source
}

// SetSource remembers what storage held. SetMember forgets it.
func (o *Object) SetSource(stored []byte) {
	if stored != nil {
		o.extra = &extra{source: stored}
	} else if o.Source() != nil {
		o.extra = nil
	}
}

// Stamp is what SetStamp was given: the form that the object is known to be in.
func (o *Object) Stamp() any { return o.stamp }

// SetStamp remembers in which form the object is. Any change of the object
// other than of its metadata forgets it.
func (o *Object) SetStamp(form any) { o.stamp = form }

// APIVersion returns group and version, as written.
func (o *Object) APIVersion() string {
	if o.types != nil {
		return o.types.APIVersion
	}
	return o.text(atVersion)
}

// Kind returns the kind, as written.
func (o *Object) Kind() string {
	if o.types != nil {
		return o.types.Kind
	}
	return o.text(atKind)
}

// GetObjectKind implements runtime.Object.
func (o *Object) GetObjectKind() schema.ObjectKind { return o }

// GroupVersionKind implements schema.ObjectKind.
func (o *Object) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion(), o.Kind())
}

// SetGroupVersionKind implements schema.ObjectKind.
func (o *Object) SetGroupVersionKind(gvk schema.GroupVersionKind) {
	version, kind := gvk.ToAPIVersionAndKind()
	if version == o.APIVersion() && kind == o.Kind() {
		return
	}
	o.stamp, o.types = nil, nil
	if version != o.text(atVersion) || kind != o.text(atKind) {
		o.types = &metav1.TypeMeta{APIVersion: version, Kind: kind}
	}
}

// String names the object, for logs: its bytes may hold secrets.
func (o *Object) String() string {
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(o.Kind() + " " + name)
}

// DeepCopyObject implements runtime.Object. The copy shares the bytes.
func (o *Object) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// DeepCopy returns a copy that may be changed. It shares the bytes.
func (o *Object) DeepCopy() *Object {
	if o == nil {
		return nil
	}
	c := *o
	c.meta = o.meta.DeepCopy()
	return &c
}

// equalButForTimes reports whether two objects differ in nothing but the times
// of their managed fields.
func (o *Object) equalButForTimes(other *Object) bool {
	if o.APIVersion() != other.APIVersion() || o.Kind() != other.Kind() || !o.SameBody(other) {
		return false
	}
	// What clients change in metadata is mostly one of these, and cheap to compare.
	was, is := o.decodedMeta(), other.decodedMeta()
	if !maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations) || was.Generation != is.Generation {
		return false
	}
	timeless := func(o *Object) []byte {
		m := o.decodedMeta().DeepCopy()
		for i := range m.ManagedFields {
			m.ManagedFields[i].Time = nil
		}
		return appendMeta(nil, m, o.GetResourceVersion())
	}
	return bytes.Equal(timeless(o), timeless(other))
}
