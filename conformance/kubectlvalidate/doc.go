// Package kubectlvalidate pins the version of kubectl-validate that conformance/cmd/compare runs. kubectl-validate's dependencies are older
// than those of the conformance module, so it has a module of its own.
package kubectlvalidate
