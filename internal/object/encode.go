package object

import (
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// fieldWriter writes the members of an object, whose keys come sorted.
type fieldWriter struct {
	dst   []byte
	begun bool
}

func (w *fieldWriter) open() { w.dst, w.begun = append(w.dst, '{'), false }

func (w *fieldWriter) close() { w.dst, w.begun = append(w.dst, '}'), true }

func (w *fieldWriter) key(name string) {
	if w.begun {
		w.dst = append(w.dst, ',')
	}
	w.begun = true
	w.dst = append(jsondoc.AppendString(w.dst, name), ':')
}

func (w *fieldWriter) text(name, value string) {
	w.key(name)
	w.dst = jsondoc.AppendString(w.dst, value)
}

// optional writes a string unless it is empty.
func (w *fieldWriter) optional(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

func (w *fieldWriter) number(name string, value int64) {
	w.key(name)
	w.dst = strconv.AppendInt(w.dst, value, 10)
}

func (w *fieldWriter) bool(name string, value *bool) {
	if value != nil {
		w.key(name)
		w.dst = strconv.AppendBool(w.dst, *value)
	}
}

func (w *fieldWriter) time(name string, t *metav1.Time) {
	switch {
	case t == nil:
	case t.IsZero():
		w.key(name)
		w.dst = append(w.dst, "null"...)
	default:
		w.key(name)
		w.dst = append(w.dst, '"')
		w.dst = append(t.UTC().AppendFormat(w.dst, time.RFC3339), '"')
	}
}

func (w *fieldWriter) stringMap(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	w.key(name)
	w.open()
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.text(key, m[key])
	}
	w.close()
}

// list writes an array of n items.
func (w *fieldWriter) list(name string, n int, item func(i int)) {
	if n == 0 {
		return
	}
	w.key(name)
	w.dst = append(w.dst, '[')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		item(i)
	}
	w.dst, w.begun = append(w.dst, ']'), true
}

// appendMeta appends metadata as upstream stores it, byte by byte: what
// encoding/json makes of ObjectMeta turned into a map.
func appendMeta(dst []byte, m *metav1.ObjectMeta, resourceVersion string) []byte {
	w := fieldWriter{dst: dst}
	w.open()
	w.stringMap("annotations", m.Annotations)
	if !m.CreationTimestamp.IsZero() {
		w.time("creationTimestamp", &m.CreationTimestamp)
	}
	if m.DeletionGracePeriodSeconds != nil {
		w.number("deletionGracePeriodSeconds", *m.DeletionGracePeriodSeconds)
	}
	w.time("deletionTimestamp", m.DeletionTimestamp)
	w.list("finalizers", len(m.Finalizers), func(i int) { w.dst = jsondoc.AppendString(w.dst, m.Finalizers[i]) })
	w.optional("generateName", m.GenerateName)
	if m.Generation != 0 {
		w.number("generation", m.Generation)
	}
	w.stringMap("labels", m.Labels)
	w.list("managedFields", len(m.ManagedFields), func(i int) { w.managed(&m.ManagedFields[i]) })
	w.optional("name", m.Name)
	w.optional("namespace", m.Namespace)
	w.list("ownerReferences", len(m.OwnerReferences), func(i int) { w.owner(&m.OwnerReferences[i]) })
	w.optional("resourceVersion", resourceVersion)
	w.optional("selfLink", m.SelfLink)
	w.optional("uid", string(m.UID))
	w.close()
	return w.dst
}

func (w *fieldWriter) managed(e *metav1.ManagedFieldsEntry) {
	w.open()
	w.optional("apiVersion", e.APIVersion)
	w.optional("fieldsType", e.FieldsType)
	if e.FieldsV1 != nil {
		w.key("fieldsV1")
		w.dst = appendCanonical(w.dst, e.FieldsV1.GetRawBytes())
	}
	w.optional("manager", e.Manager)
	w.optional("operation", string(e.Operation))
	w.optional("subresource", e.Subresource)
	w.time("time", e.Time)
	w.close()
}

func (w *fieldWriter) owner(r *metav1.OwnerReference) {
	w.open()
	w.text("apiVersion", r.APIVersion)
	w.bool("blockOwnerDeletion", r.BlockOwnerDeletion)
	w.bool("controller", r.Controller)
	w.text("kind", r.Kind)
	w.text("name", r.Name)
	w.text("uid", string(r.UID))
	w.close()
}

// appendCanonical appends JSON of any form in canonical form, and null for what
// is no JSON: an object must stay one that can be read.
func appendCanonical(dst, value []byte) []byte {
	doc, err := jsondoc.Parse(value, jsondoc.Limits{})
	if err != nil {
		return append(dst, "null"...)
	}
	defer doc.Release()
	return doc.AppendCanonical(dst, jsondoc.Root)
}
