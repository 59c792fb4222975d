// Package models describes the types of k8s.io/api as OpenAPI.
//
// Kubernetes generates such definitions from the comments of the types, into a
// package that cannot be imported. What the comments said is found elsewhere:
//
//	names, formats ─── Go types, their JSON tags and OpenAPI methods ──┐
//	descriptions ───── SwaggerDoc ─────────────────────────────────────┤
//	lists, maps, ───── the schemas that client-go applies by ──────────┼──▶ Definitions ──▶ kube-openapi
//	unions, defaults                                                   │
//	optional, enum ─── notes.go ───────────────────────────────────────┤
//	metadata, scale ── the generated definitions of apiextensions ─────┘
//
// # Invariants
//
// What apiextensions has generated definitions of is taken from there, and
// equals what every Kubernetes server publishes.
//
// notes.go says no more than what cannot be had otherwise; a test reads the
// comments in the source of k8s.io/api and fails where it says too much or too
// little.
//
// The same roots give the same definitions, whatever the order of the roots.
package models
