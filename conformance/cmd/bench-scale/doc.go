// Command bench-scale measures the parts that docs/scale.md puts together: what a write costs with one and more replicas
// and etcds, what a tenant takes while it is in use, and who notices that one of three etcds is gone.
//
//	points  R replicas, E etcds ─▶ creates in 30 tenants ─▶ creates/s, CPU of servers, etcds and client for each
//	in use  N tenants, one request each, none is closed  ─▶ memory and goroutines of each, CPU of a cold start
//	spread  3 replicas, 3 etcds, 3,000 tenants with an object each ─▶ keys in each etcd ─▶ kill -9 of one ─▶ answers of all replicas
package main
