// Package faults stands between clients and an API server and makes the server
// behave as badly as a correct one may. espaliertest.Faults and
// espaliertest.Explore are made of it.
//
//	client ── RoundTrip ──► pending ─┐
//	                                 ├─► scheduler: one wire event at a time,
//	client ◄─ watch stream ◄─ log ───┘   in an order that the seed decides
//	                           ▲               │
//	                           └── server ◄────┘
//
// An Interposer is the transport of the clients. Requests wait in it until the
// clients are quiet; then the scheduler picks one of everything that can happen
// next: a request that is answered, an event that a watch delivers, a watch that
// ends. For each resource that clients ask for, a log has all events since the
// first request, read by an unfiltered watch of the interposer's own. Watches of
// clients are served from it, so that the interposer decides when an event
// arrives, and knows when it has all events of a write.
//
// # Invariants
//
// Decisions are hashes of the seed, the name of the thing that is decided on and
// a count of such things, never the next number of a shared stream: a request
// that is made once more changes no other decision.
//
// The clients may run in a bubble of testing/synctest. Everything that waits for the
// network runs in the goroutines of type outside, which belong to no bubble: the bubble's
// clock stands still while the server works.
package faults
