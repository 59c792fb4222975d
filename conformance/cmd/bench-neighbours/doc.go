// Command bench-neighbours measures what a tenant notices of others: of one that floods the server, and of one that is full and goes on writing.
//
//	quiet │ flood │ quiet │ full │ quiet │ …   each for -time, -rounds times
//	  └───────┴───────┴──────┴─────┴─── the requests of one tenant, their p99 ─▶ median of each phase ─▶ ratios
//
// The flood comes from a process of its own. All processes share the processors of one machine, so that the clients of the flood and
// etcd take time, too: the benchmark prints how much. The phases without a flood are compared with each other as well, which shows
// how much the machine alone changes the figures.
package main
