// Package history is the record of one run against API servers: what clients sent
// and were told, what watches brought, and what etcd itself says has happened.
// The load generator fills it, and checkers read it: neither knows the other.
//
//	clients ──▶ Operation, Session ─┐
//	etcd    ──▶ Write               ├─▶ History ──▶ checkers ──▶ violations
//	faults  ──▶ Fault               ┘
//
// All times are nanoseconds of one monotonic clock since the run began.
package history
