// Package discovery tells clients which resources there are.
//
//	catalog ──▶ a fragment of JSON per group, made anew when a definition of the group changes
//	                 │
//	/apis ───────────┴──▶ fragments one after the other, as APIGroupList or APIGroupDiscoveryList
//	/apis/G, /apis/G/V ─▶ made of the catalog's entries for each request
//	/api, /api/V ───────▶ the built-in groups alone
//
// # Invariants
//
// A resource is listed when its definition is Established, in the versions
// that are served, under the names that were accepted. A request sees the
// catalog as it is: there is no delay after which it becomes consistent.
//
// No document is kept decoded, nor as a whole. Ten thousand definitions cost
// some hundred bytes each here.
//
// Built-in versions win over custom resources of the same group and version,
// as requests to them do.
package discovery
