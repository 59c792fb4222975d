// Package environment runs the processes that faults hit: etcd, replicas of an API server, and a proxy on every link between them.
//
//	clients ──link──▶ replica 0 ──link──▶ member 0 ◀─link─ other members
//	clients ──link──▶ replica 1 ──link──▶ member 1 …
//
// All connections have TLS with certificates made for the environment. A process can be
// killed, stopped and started again; a link can be cut, slowed down, held (half-open),
// or lose the answers. The harness itself talks to etcd directly, so that its record
// does not depend on the links.
//
// Close ends everything; children also end with the process that started them.
package environment
