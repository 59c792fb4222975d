// Package environment runs the processes that faults hit: etcd or kine, replicas of an API server, and a proxy on every link between them.
//
//	clients ──link──▶ replica 0 ──link──▶ member 0 ◀─link─ other members
//	clients ──link──▶ replica 1 ──link──▶ member 1 …
//
// All connections have TLS with certificates made for the environment. A process can be
// killed, stopped and started again; a link can be cut, slowed down, held (half-open),
// or lose the answers. The harness itself talks to etcd directly, so that its record
// does not depend on the links.
//
// Kine is one member, in front of SQLite or PostgreSQL. It is killed and stopped as etcd is;
// its database is not: SQLite is a file in the member's folder, PostgreSQL a process that no
// fault hits. What etcd does for the harness and kine does not have is in engine.go.
//
// Close ends everything; children also end with the process that started them.
package environment
