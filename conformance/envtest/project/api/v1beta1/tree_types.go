package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TreeSpec is what a tree is to be.
type TreeSpec struct {
	// Variety is what grows on it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=60
	Variety string `json:"variety"`

	// Form is how it is pruned.
	// +kubebuilder:validation:Enum=Cordon;Fan;Standard
	// +optional
	Form string `json:"form,omitempty"`

	// HeightMetres is how high it may grow.
	// +optional
	HeightMetres int32 `json:"heightMetres,omitempty"`
}

// +kubebuilder:object:root=true

// Tree is a tree of an orchard.
type Tree struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec TreeSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// TreeList is a list of trees.
type TreeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Tree `json:"items"`
}
