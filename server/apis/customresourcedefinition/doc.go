// Package customresourcedefinition is the resource customresourcedefinitions of
// apiextensions.k8s.io, in its versions v1 and v1beta1.
//
// In memory and in etcd a CRD is the canonical JSON of v1. If v1 would not fit into a
// request to etcd, the CRD is stored in v1beta1. Go types are used where clients rely
// on their behaviour: to decode a request with exactly the errors of the ordinary
// decoder, to set defaults, and to convert between the versions. Everything else works
// on bytes.
//
//	request ── decode, default, convert (Go types) ──▶ v1 JSON ── strategy, crd.Validate ──▶ etcd
//	                                                    │  ▲
//	response in v1 ◀──────────── the bytes ─────────────┤  └── FromStorage: ours as they are, others like a request
//	response in v1beta1 ◀── convert (Go types) ─────────┘
//	protobuf, either version ◀──▶ (Go types) ◀──▶ JSON as above
//
// The subresource plan applies a new CRD to the objects that are stored, and stores nothing:
//
//	POST …/plan ── decode, crd.Validate ──▶ impact.Change ◀── store.Walk: bytes in etcd, at one revision
//	                                            └──▶ impact.Summary, page by page
//
// # v1beta1
//
// No other server has this version any more, and the documents about structural
// schemas are written for it. A CRD in v1beta1 keeps unknown fields unless it has
// preserveUnknownFields: false. While it keeps them and uses no newer feature, its
// schemas may be missing or not structural. All fields that it sets must be valid.
//
// # Invariants
//
// Schemas lose nothing that this engine understands: keywords that the Go types
// do not have (see Keywords) are carried from the source to the result.
// CRDs are not kept in a watch cache: the catalog has them, compressed.
// A delete, of one CRD or a collection, always adds the finalizer that keeps the CRD
// until its objects are deleted. If instances are protected, the delete is rejected
// while there are instances, unless the CRD has the annotation that allows it.
// If plans are required, an update that would lose data of stored objects is rejected, unless the
// CRD has the id of an approved plan: see changeGuard.
// A change that needs a plan cannot switch that off for itself. Users who may update the CRD can
// remove the annotation in a request of its own: it is for mistakes, and an audit log shows it.
// A plan shows its user nothing that the user may not list, and sends objects only to webhooks
// that the CRD has or that the user may give it.
package customresourcedefinition
