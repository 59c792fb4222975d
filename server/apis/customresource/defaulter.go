package customresource

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

// defaulter sets defaults in objects that server-side apply has merged. Nulls that
// the schema does not allow stay in these objects, so that validation rejects them:
// the client has set them on purpose. For other requests nulls are dropped.
type defaulter struct {
	inner   runtime.ObjectDefaulter
	decoder *Decoder
}

func newDefaulter(decoder *Decoder) defaulter { return defaulter{codec.Defaulter(decoder), decoder} }

// Default implements runtime.ObjectDefaulter.
func (d defaulter) Default(in runtime.Object) {
	o, ok := in.(*object.Object)
	if !ok || d.decoder.currentFor(o) == nil || schemaMarkerOf(o) == d.decoder.currentFor(o) || !bytes.Contains(o.JSON(), []byte("null")) {
		d.inner.Default(in)
		return
	}
	before := o.DeepCopy()
	d.inner.Default(in)
	keepNulls(o, before)
}

// keepNulls puts nulls back into o that are in before, which is o as it was
// before it was normalized. ReplaceMember leaves apiVersion, kind and metadata alone.
func keepNulls(o, before *object.Object) {
	now, err := decode(o.JSON())
	if err != nil {
		return // cannot happen: it has been read before
	}
	then, err := decode(before.JSON())
	if err != nil {
		return
	}
	members, ok := now.(map[string]any)
	old, wasObject := then.(map[string]any)
	if !ok || !wasObject {
		return
	}
	for name, value := range old {
		current, there := members[name]
		if there && !addNulls(current, value) || !there && value != nil {
			continue
		}
		if raw, err := json.Marshal(current); err == nil { // canonical, as that of all maps is
			o.ReplaceMember(name, raw)
		}
	}
}

// addNulls adds the nulls in before that now has not, and says whether there
// were any. Normalizing leaves the lengths of lists alone.
func addNulls(now, before any) (added bool) {
	switch now := now.(type) {
	case map[string]any:
		old, ok := before.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range old {
			current, there := now[name]
			switch {
			case there:
				added = addNulls(current, value) || added
			case value == nil:
				now[name] = nil
				added = true
			}
		}
	case []any:
		old, ok := before.([]any)
		if !ok || len(old) != len(now) {
			return false
		}
		for i := range now {
			added = addNulls(now[i], old[i]) || added
		}
	}
	return added
}
