// Package v1 has the API of orchards: trees.
//
// +kubebuilder:object:generate=true
// +groupName=orchard.example.com
package v1
