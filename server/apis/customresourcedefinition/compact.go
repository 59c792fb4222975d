package customresourcedefinition

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/object"
)

// compactAbove is the size of a spec above which a CRD may not fit into
// a request to etcd, 1.5 MiB unless configured otherwise.
const compactAbove = 1 << 20

// compacting writes large CRDs to etcd in v1beta1, which has shared fields of all
// versions only once. Upstream writes all CRDs so.
type compacting struct{ runtime.Codec }

// Encode implements runtime.Encoder.
func (c compacting) Encode(obj runtime.Object, w io.Writer) error {
	if o, ok := obj.(*object.Object); ok && len(o.Member("spec")) > compactAbove {
		small, err := convertor{beta}.object(o)
		if err != nil {
			return err
		}
		if len(small.Member("spec")) < len(o.Member("spec")) {
			obj = small
		}
	}
	return c.Codec.Encode(obj, w)
}
