// Package identity says who sends a request, and whether they are let in.
//
//	TLS connection ── Certificates ──▶ user and groups ── Only(group) ──▶ in, or 403
//	       no certificate ── Anonymous, for the health paths alone ──▶ in, or 401
//
// Until there are roles, one group is the whole policy: its members may do
// everything, and nobody else anything but ask whether the server is alive.
//
// # Invariants
//
// A certificate is let in only while the chain that it was verified with is
// valid, and only for the authorities that are configured now: what is
// remembered of a verification is never older than either.
package identity
