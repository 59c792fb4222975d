package v1alpha1

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/espalier-dev/espalier/controllers/sample/v1"
)

// Version is the group and version of the types here.
var Version = schema.GroupVersion{Group: v1.Version.Group, Version: "v1alpha1"}

// A Trellis is a frame for plants.
type Trellis struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec      `json:"spec"`
	Status v1.Status `json:"status,omitzero"`
}

// A Spec says what to grow, and where.
type Spec struct {
	Plant string `json:"plant"`
	Size  string `json:"size,omitempty"` // as in 3x4
}

// AddToScheme makes the type known.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Version, &Trellis{})
	metav1.AddToGroupVersion(scheme, Version)
	return nil
}

// DeepCopyObject copies it.
func (t *Trellis) DeepCopyObject() runtime.Object {
	whole := v1.Trellis{ObjectMeta: t.ObjectMeta, Status: t.Status}
	var to v1.Trellis
	whole.DeepCopyInto(&to)
	return &Trellis{TypeMeta: t.TypeMeta, ObjectMeta: to.ObjectMeta, Spec: t.Spec, Status: to.Status}
}

// ToV1 converts to the stored version.
func ToV1(_ context.Context, from *Trellis, to *v1.Trellis) error {
	to.ObjectMeta, to.Status = from.ObjectMeta, from.Status
	to.Spec = v1.Spec{Plant: from.Spec.Plant}
	if from.Spec.Size == "" {
		return nil
	}
	size := &to.Spec.Size
	if n, err := fmt.Sscanf(from.Spec.Size, "%dx%d", &size.Rows, &size.Columns); err != nil || n != 2 {
		return fmt.Errorf("spec.size is %q: it has to be rows and columns, as in 3x4", from.Spec.Size)
	}
	return nil
}

// FromV1 converts from the stored version.
func FromV1(_ context.Context, from *v1.Trellis, to *Trellis) error {
	to.ObjectMeta, to.Status = from.ObjectMeta, from.Status
	to.Spec = Spec{Plant: from.Spec.Plant}
	if size := from.Spec.Size; size != (v1.Size{}) {
		to.Spec.Size = fmt.Sprintf("%dx%d", size.Rows, size.Columns)
	}
	return nil
}
