// Command simulate says what sites of 1, 10 and 100 etcds carry, and what is exhausted first.
//
//	docs/results.json ─▶ parts: CPU of a read, a write and a start; memory of a tenant in use; bytes in etcd
//	                       └▶ site (etcds, replicas, balancer) × load (tenants, in use, requests) ─▶ queues ─▶ p99, use of each part
//	                                                                                                    └▶ table
//
// It is a simulation of queues, request by request: a request waits for a core of its replica, then for its etcd. The parts were
// measured on one machine; the simulation puts together more of them than one machine has. A second table compares it with what was
// measured with several replicas and etcds.
package main
