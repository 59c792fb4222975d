// Package crd works on whole CustomResourceDefinitions.
//
// For now it is the bridge for callers who hold the Go types of
// apiextensions.k8s.io: it checks and compiles their schemas. The engine
// itself, package espalier, knows only JSON.
package crd
