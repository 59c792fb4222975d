// Package customresourcedefinition is the resource customresourcedefinitions of
// apiextensions.k8s.io, in its versions v1 and v1beta1.
//
// In memory and in etcd a definition is the canonical JSON of v1, except that
// etcd has v1beta1 where v1 would not fit into a request to it. Go types are
// used where they say what clients rely on: to read a request with exactly the
// errors of the ordinary decoder, to fill in defaults, and to get from one
// version to the other. What comes after works on bytes.
//
//	request ── decode, default, convert (Go types) ──▶ v1 JSON ── strategy, crd.Validate ──▶ etcd
//	                                                    │  ▲
//	response in v1 ◀──────────── the bytes ─────────────┤  └── FromStorage: ours as they are, others like a request
//	response in v1beta1 ◀── convert (Go types) ─────────┘
//	protobuf, either version ◀──▶ (Go types) ◀──▶ JSON as above
//
// # v1beta1
//
// No other server has this version any more, and the documents about structural
// schemas are written for it. A definition that comes in v1beta1 keeps unknown
// fields unless it says preserveUnknownFields: false, and as long as it keeps
// them and uses no new feature, its schemas may be missing or not structural.
// Whatever it uses has to be valid all the same.
//
// # Invariants
//
// Schemas lose nothing that this engine understands: keywords that the Go types
// do not have (see Keywords) are carried from the source to the result.
// Definitions are not kept in a watch cache: the catalog has them, compressed.
// Deleting, one or a collection, always leaves the finalizer behind that keeps
// the definition until its objects are gone. If instances are protected, it begins only
// when there are none, or the definition says that they may go with it.
package customresourcedefinition
