// Package v1beta1 has the API of orchards: trees, as it was.
//
// +kubebuilder:object:generate=true
// +groupName=orchard.example.com
package v1beta1
