// Package kubeconform pins the version of kubeconform that conformance/cmd/offline and conformance/cmd/compare run.
package kubeconform
