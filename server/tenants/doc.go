// Package tenants lets one server be many: below /clusters/NAME is a complete API server
// with CRDs, namespaces, roles, service accounts and objects of its own.
//
//	/clusters/one/apis/… ──▶ who is it? ──▶ is there a tenant "one"? ──▶ its plane ──▶ handler, with the path /apis/…
//	                          │ 401, 403      │ 404                        └ started by the first request,
//	                          └ before that                                  closed when it has had none for a while
//
// A tenant is an object tenants.espalier.dev of the server. Everything of it is in etcd below
// a folder of its own, whose name has the UID of the object, so that a tenant that is created
// again under the same name has nothing of the former one:
//
//	PREFIX-tenants/UID       the guard: what is read or written in the folder has the condition that it is there
//	PREFIX-tenants/UID/…     the same keys as a server of its own has
//
// # Invariants
//
// Nothing of a tenant is in memory while it has no requests: no goroutine, connection, cache or
// metric series, and no entry of a list of tenants.
//
// A request is authenticated before anything looks whether there is such a tenant. Without
// credentials for a name, the answer is the same whether or not it exists.
//
// Who has credentials for a tenant? Its own service accounts, whose tokens name the tenant
// as their issuer; and users of the server who may do the verb "access" to the object of the
// tenant. What they may do within, the roles of the tenant decide. Service accounts of the
// server, and of other tenants, are not accepted in a tenant.
//
// A tenant is in one etcd at a time, which the status of its object names. Its guard in that etcd has the
// epoch of the place as its value. Moves change the status step by step, each on the condition that it has
// not changed; copies end at fences: see docs/design/0014-tenants.md.
//
// When a tenant is deleted, its guard goes first. From then on no process can write into its
// folder, however late a write arrives; then the folder is emptied, and then the object goes.
package tenants
