// Package customresource serves custom resources.
//
// A [Server] serves the resources of the CRDs in the catalog. It builds the
// handlers of a resource on the first request:
//
//	request ──▶ Server ── catalog.Entry ──▶ servedResource (one per CRD)
//	                                          ├─ versionStorage, one per version: Decoder, storage, watch cache
//	                                          └─ crdInfo, one per revision of the CRD:
//	                                               endpoints with strategies, tables, field managers
//	                                               of the resource, its status and its scale
//
// Objects stay bytes. A [Decoder] normalizes objects from requests and from etcd
// by the schema of their version. A [strategy] decides what a request may change
// and validates the result.
//
// # Invariants
//
// A request uses one crdInfo to its end. A change of a CRD makes a new crdInfo. The
// new one takes over the storage of each version, unless the change makes the
// contents of its watch cache wrong. Then the old storage is closed, with its
// watches, when the last request that uses it is done, or after half a second. The
// server acknowledges the change when the handlers of these watches have returned.
// After that, no watch receives anything that the old storage has read.
//
// Every crdInfo of a CRD reads objects with the current schemas. Each object carries
// a marker of the schema that normalized it, and is normalized again if that is not
// the current schema. Managed fields are compared within the schemas of one crdInfo.
//
// The server reports every pruned field: in the audit event, in a metric, and as a
// warning unless the client turns warnings off.
//
// While a schema is compiled, only requests to the same resource wait. Resources
// that were not used for a while are closed, as are the least recently used ones if
// too many are idle. The next request builds them again.
//
// The server reads etcd before it answers that a resource does not exist: another
// replica may have told the client that it exists.
package customresource
