// Package robustness runs API servers under faults, records what clients see, and checks it.
//
//	environment ─▶ processes and links
//	load  ─▶ clients, watches, informers ─▶ history
//	fault ─▶ a schedule of faults by a seed
//	check ─▶ violations of a history
//
// The environment stores everything in etcd, or in SQLite or PostgreSQL by kine. Kine has no
// transactions with several conditions, by which the server keeps the order of writes on etcd:
// violations are expected there. They are counted as all others are.
//
// A Runner does many short runs on one environment: one or two faults and some hundred
// operations each, because the cost of checking grows faster than a history. A
// directed case reproduces one suspected bug step by step. Availability measures how
// soon the servers answer again after a fault. The command is conformance/cmd/robustness.
package robustness
