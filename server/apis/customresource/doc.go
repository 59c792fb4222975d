// Package customresource serves custom resources.
//
// A [Server] takes requests to resources that the catalog has definitions of,
// and builds what serves one when it is first asked for:
//
//	request ──▶ Server ── catalog.Entry ──▶ serving (one per definition)
//	                                          ├─ vault, one per version: Form, storage, watch cache
//	                                          └─ view, one per state of the definition:
//	                                               endpoints with strategies, tables, field managers
//	                                               of the resource, its status and its scale
//
// Objects stay bytes. A [Form] brings those of requests and of storage into the
// shape that the schema of their version says; a [strategy] decides what a
// request may change and has the result validated.
//
// # Invariants
//
// A request uses one view to its end. A new state of a definition makes a new
// view; vaults are handed on to it unless what they hold would be wrong:
// otherwise the old ones are closed, with the watches on them, when the last
// request that uses them is done, or after half a second. The change is acknowledged
// only when the handlers of these watches have returned, and nothing that the old
// vaults have read is sent to a watch after that.
//
// All views of a definition read objects with the current schemas. Objects are
// stamped with the schema that they were normalized with, and normalized again
// when it is not the current one. Managed fields are compared within the schemas
// of one view.
//
// Nothing disappears unsaid: what is pruned of a request is in its audit event
// and in a metric, and in the warnings of clients that do not refuse to hear it.
//
// Nothing waits for a lock while a schema is compiled, but requests to the same
// resource. What has not been used for a while is forgotten, as is what was used
// longest ago of too much that is idle, and built again when needed.
//
// That there is no such resource is said only after asking etcd: another server
// may have told the client that there is.
package customresource
