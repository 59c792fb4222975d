package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the group and version of the types here.
var Version = schema.GroupVersion{Group: "garden.example.com", Version: "v1"}

// Ready is the condition of a trellis that has all its rows.
const Ready = "Ready"

// A Trellis is a frame for plants: rows times columns.
type Trellis struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// A Spec says what to grow, and where.
type Spec struct {
	Plant string `json:"plant"`
	Size  Size   `json:"size,omitzero"`
}

// A Size is counted in wires.
type Size struct {
	Rows    int32 `json:"rows"`
	Columns int32 `json:"columns"`
}

// A Status says what there is.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Rows               int32              `json:"rows,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// A TrellisList is a list of them.
type TrellisList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Trellis `json:"items"`
}

// AddToScheme makes the types known.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Version, &Trellis{}, &TrellisList{})
	metav1.AddToGroupVersion(scheme, Version)
	return nil
}

// DeepCopyInto copies everything into to.
func (t *Trellis) DeepCopyInto(to *Trellis) {
	*to = *t
	t.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	if t.Status.Conditions != nil {
		to.Status.Conditions = make([]metav1.Condition, len(t.Status.Conditions))
		for i := range t.Status.Conditions {
			t.Status.Conditions[i].DeepCopyInto(&to.Status.Conditions[i])
		}
	}
}

// DeepCopyObject copies it.
func (t *Trellis) DeepCopyObject() runtime.Object {
	to := &Trellis{}
	t.DeepCopyInto(to)
	return to
}

// DeepCopyObject copies it.
func (l *TrellisList) DeepCopyObject() runtime.Object {
	to := &TrellisList{TypeMeta: l.TypeMeta, Items: make([]Trellis, len(l.Items))}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&to.Items[i])
	}
	return to
}
