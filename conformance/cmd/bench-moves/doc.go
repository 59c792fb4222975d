// Command bench-moves moves tenants between etcds while clients write, read and watch them by all replicas, and checks what the
// clients get: see server/tenants/movetest. Then it does so with faults.
//
//	3 replicas, an etcd of the servers, 3 etcds ─▶ tenants under load ─▶ N moves ─▶ the longest time without an acknowledged write
//	                                                               └─▶ M moves, each with a fault at a random phase:
//	                                                                   kill -9 of an etcd or a replica, SIGSTOP of one, a cancel
//
// It fails if a check does, and prints
//
//	moves: N moves | violations V | pause p50 A ms p99 B ms max C ms
package main
