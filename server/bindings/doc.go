// Package bindings lets tenants share APIs: one, the provider, has CRDs and exports them; others,
// the consumers, bind the export, and have the resources as if the CRDs were their own.
//
//	provider                      consumer
//	CRD, APIExport ◀── allowed? ── APIBinding
//	   │                              │ grant, note
//	   └──────── lent entry ─────────▶ catalog ──▶ handlers, discovery, OpenAPI …
//	   ┌──────── marks ◀────────────── objects, in the consumer's own range
//	   ▼
//	/clusters/PROVIDER/clusters/*: one list and watch of the marks of all consumers
//
// No CRD is copied: the catalog of a consumer in use is lent the provider's entry. Compiled schemas
// are shared by their content.
//
// Objects are in the range of the consumer, among its others, so that its quota, garbage collection,
// namespaces and deletion are what they are for any object. Each write of one is a transaction that
// writes a mark in the range of the provider, too (see [tenants.Shared]).
//
// # Invariants
//
// A consumer without requests has nothing in memory, however much it has bound. A provider that no
// consumer in use has bound has nothing either.
//
// Objects and their marks are written together, under the condition that the grant and the
// provider's guard exist. A grant is made under the condition that the APIBinding is as it was read.
// What was deleted meanwhile stays deleted, however late a write arrives.
//
// What a provider may do to objects is decided by the grant alone: no role of the consumer is
// asked. What it sees of all consumers are objects whose grant has the verbs list and watch. About
// a tenant that has bound nothing it gets the answer that it gets about none.
//
// A consumer gets one answer for all exports that it may not bind, whether or not they exist.
package bindings
