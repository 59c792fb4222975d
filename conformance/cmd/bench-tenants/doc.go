// Command bench-tenants measures what tenants cost: to be there, to come into use, to share CRDs, and to go.
//
//	etcd, server with --tenants ─▶ N tenants.espalier.dev ─▶ each used once ─▶ no requests ─▶ each binds 5 shared CRDs, ten objects ─▶ no requests
//	                                     create/s                use/s       memory, goroutines                                memory, goroutines
//	─▶ some are used again, after they were closed ─▶ all are deleted
//	            cold p50, p99                              seconds
//
// The CRDs are those of one more tenant, the provider.
package main
