// Command bench-plan measures what it takes to plan a change of a CRD that has many objects: the time of the server, and the
// memory that it needs besides its own.
//
//	etcd, server, CRD ─▶ objects of 1 KB through the server, their stored bytes renamed in bulk ─▶ POST …/plan, page by page ─▶ seconds, peak of memory
//
// Every tenth object has a field that the new CRD removes, and every hundredth a value that it refuses.
package main
