// Package kubeconform pins the version of kubeconform that conformance/cmd/offline runs.
package kubeconform
