package object

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// List is a list of objects. Its JSON is made of theirs.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Object
}

var (
	_ runtime.Object          = (*List)(nil)
	_ metav1.ListMetaAccessor = (*List)(nil)
)

// DeepCopyObject implements runtime.Object. The objects share their bytes.
func (l *List) DeepCopyObject() runtime.Object {
	c := *l
	c.ListMeta = *l.ListMeta.DeepCopy()
	if l.Items != nil {
		c.Items = make([]Object, len(l.Items))
	}
	for i := range l.Items {
		c.Items[i] = l.Items[i]
		c.Items[i].meta = l.Items[i].meta.DeepCopy()
	}
	return &c
}

// AppendJSON appends the list as canonical JSON.
func (l *List) AppendJSON(dst []byte) []byte {
	dst = l.AppendOpening(dst)
	for i := range l.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.Items[i].AppendJSON(dst)
	}
	return l.AppendClosing(dst)
}

// AppendOpening appends what comes before the items.
func (l *List) AppendOpening(dst []byte) []byte {
	dst = append(dst, '{')
	if l.APIVersion != "" {
		dst = append(append(dst, keyVersion...), jsondoc.AppendString(nil, l.APIVersion)...)
		dst = append(dst, ',')
	}
	return append(dst, `"items":[`...)
}

// AppendClosing appends what comes after the items. A list that comes from
// storage says where it continues even if it does not, as upstream's do; one
// that has no version has no metadata.
func (l *List) AppendClosing(dst []byte) []byte {
	w := fieldWriter{dst: append(dst, ']'), begun: true}
	w.optional("kind", l.Kind)
	if l.ListMeta != (metav1.ListMeta{}) {
		w.key("metadata")
		w.open()
		w.text("continue", l.Continue)
		if l.RemainingItemCount != nil {
			w.number("remainingItemCount", *l.RemainingItemCount)
		}
		w.text("resourceVersion", l.ResourceVersion)
		w.optional("selfLink", l.SelfLink)
		if l.ShardInfo != nil {
			if info, err := json.Marshal(l.ShardInfo); err == nil {
				w.key("shardInfo")
				w.dst = appendCanonical(w.dst, info)
			}
		}
		w.close()
	}
	w.close()
	return w.dst
}

// MarshalJSON implements json.Marshaler.
func (l *List) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil), nil }
