// Package kinds validates, defaults and prints the objects of Kubernetes' built-in
// kinds: Pods, Deployments, Services and so on. The kinds are data.
//
//	types.json ─ fields of the Go types ────────────────┐
//	data/*.yaml ─ defaults, keywords, rules, columns ───┼──▶ Kind ──▶ Default, Prepare, Validate, Warnings, Row, Fields
//	formats.go, functions.go ─ what rules call ─────────┘
//
// Objects are trees, as encoding/json makes them of the Go types of k8s.io/api.
// This package does not import these types: the command line uses it too.
//
// docs/design/0010-kinds.md describes the format of the files.
//
// # Invariants
//
// A rule never fails on an absent field: the field reads as its zero value, as in Go.
//
// The cost of a write is linear in the size of the object, for the rules of all files.
//
// Rules are parsed at their first use. A test, and not the server, checks their types.
package kinds
