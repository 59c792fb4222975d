// Command bench-plan measures what it takes to plan a change of a CRD that has many objects: the time of the server, and the
// memory that it needs besides its own.
//
//	etcd, server, CRD ─▶ objects of 1 KB through the server, their stored bytes renamed in bulk ─▶ POST …/plan, page by page ─▶ seconds, peak of memory
//
// Then it makes another version the storage version and measures the migration of the objects: its rate on an idle server, and
// the latency of users' requests at half of the server's capacity, alone and beside it.
//
// Every tenth object has a field that the new CRD removes, and every hundredth a value that it refuses.
package main
