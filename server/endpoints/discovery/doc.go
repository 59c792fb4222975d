// Package discovery serves the discovery documents.
//
//	catalog ──▶ a fragment of JSON per group, made anew when a CRD of the group changes
//	                 │
//	/apis ───────────┴──▶ fragments one after the other, as APIGroupList or APIGroupDiscoveryList
//	/apis/G, /apis/G/V ─▶ made of the catalog's entries for each request
//	/api, /api/V ───────▶ the built-in groups alone
//
// # Invariants
//
// A resource is listed when its CRD is Established, in the versions
// that are served, under the names that were accepted. A request sees the current
// catalog, without delay.
//
// No document is kept decoded, nor as a whole. Ten thousand CRDs cost
// some hundred bytes each here.
//
// Built-in versions win over custom resources of the same group and version,
// as requests to them do.
package discovery
