// Package impact says what a change of a CRD does to objects that are stored.
//
//	stored bytes ─┬─ read by the old CRD ──▶ as clients see it today ────┐
//	              └─ read by the new CRD ──▶ as clients will see it ─────┼─▶ Outcome ──▶ Summary
//	                         │                                           │
//	                         ├─ converted to the new storage version ────┤
//	                         ├─ sent again as a new object ──────────────┤
//	                         └─ updated without a change ────────────────┘
//
// [New] compiles both CRDs into a [Change]. [Change.Page] applies it to objects as storage has
// them, or as clients have read them. [Summary] counts outcomes: pages, workers and servers each
// have their own, and [Summary.Merge] joins them.
//
// Everything goes through package request, which the server uses as well, so that an outcome is
// what the server will answer.
//
// # What is compared
//
// An outcome has only what the change does. A field that the old CRD prunes when it reads the
// object is not lost by the change; an error that the old CRD reports for the same request is
// not new.
//
// An object is read in the version that it is stored in, and converted to the storage version
// of the new CRD. If conversion rules change, it is converted to each version that is served,
// too: lists fail if one object does not convert. It is sent again as clients see it today, in the version that it is stored
// in if the new CRD serves that, otherwise in the new storage version. The update writes what
// clients will read, so that ratcheting applies as on the server: what has not changed is not
// validated again.
//
// # Limits
//
// Conversion webhooks are called only if the caller has a function for that; without one,
// the outcome of what they would convert is [ConversionUnknown]. Admission is not part of an
// outcome: policies and webhooks see requests, not stored objects.
//
// A summary has a bounded number of groups, names and objects, whatever the objects have in
// them; what is beyond is counted.
package impact
