// Package models describes the types of k8s.io/api as OpenAPI.
//
// Kubernetes generates such OpenAPI definitions from the comments of the types, into
// a package that cannot be imported. This package takes them from other sources:
//
//	names, formats ─── Go types, their JSON tags and OpenAPI methods ──┐
//	descriptions ───── SwaggerDoc ─────────────────────────────────────┤
//	lists, maps, ───── the schemas that client-go applies by ──────────┼──▶ kube-openapi
//	unions, defaults                                                   │
//	optional, enum ─── notes.json ──────────────────────────────────────┤
//	metadata, scale ── OpenAPI definitions of apiextensions ───────────┘
//
// # Invariants
//
// Types with generated OpenAPI definitions in apiextensions use these, so that they
// equal those of every Kubernetes server.
//
// notes.json has only what no other source has. A test writes it from the comments in
// the source of k8s.io/api and fails on missing and on needless entries.
//
// The same roots give the same OpenAPI definitions, in any order.
package models
