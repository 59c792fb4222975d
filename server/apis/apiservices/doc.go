// Package apiservices serves the APIServices of apiregistration.k8s.io. Clients read
// from them which groups and versions a server has.
//
//	groups that are built in ── at start ──▶ v1.apps, v1.batch, …  automanaged: onstart
//	CRDs in the catalog ─── on each change ▶ v1.example.com, …     automanaged: "true"
//	a client ───────────────── APIService with a service ────────▶ stored, Available: False
//
// # Invariants
//
// The server passes no request on: an APIService with a service has the condition
// Available with status False and the reason NotAggregated.
//
// Only objects with the label automanaged are deleted here. Objects of the same name that
// a client has made stay as they are.
//
// k8s.io/api does not have these types. They are stored as JSON, as in kube-apiserver, and
// answered as JSON and YAML.
package apiservices
