package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TreeSpec is what a tree is to be.
type TreeSpec struct {
	// Variety is what grows on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=60
	Variety string `json:"variety"`

	// Form is how it is pruned. The webhook fills it in.
	// +kubebuilder:validation:Enum=Cordon;Fan;Standard
	// +optional
	Form string `json:"form,omitempty"`

	// HeightCentimetres is how high it may grow.
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:default=180
	// +optional
	HeightCentimetres int32 `json:"heightCentimetres,omitempty"`
}

// TreeStatus is what a tree is.
type TreeStatus struct {
	// ObservedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Label is the name of the ConfigMap that describes the tree.
	// +optional
	Label string `json:"label,omitempty"`

	// Conditions are what is known of it.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Variety",type=string,JSONPath=`.spec.variety`
// +kubebuilder:printcolumn:name="Form",type=string,JSONPath=`.spec.form`

// Tree is a tree of an orchard.
type Tree struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec TreeSpec `json:"spec"`
	// +optional
	Status TreeStatus `json:"status,omitzero"`
}

// Hub marks the version that all others are converted to and from.
func (*Tree) Hub() {}

// +kubebuilder:object:root=true

// TreeList is a list of trees.
type TreeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Tree `json:"items"`
}
