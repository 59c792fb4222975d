// Package turns shares the processors out between tenants.
//
//	request ─▶ Take ─▶ works ─▶ waits for etcd or a webhook ─▶ works ─▶ Leave
//	             │       ▲        Away: others work meanwhile     ▲
//	             └ waits ┘ while its tenant has its share, ───────┘
//	                       and the processors are busy
//
// A limit on the requests of each tenant does not do that: twenty requests of one tenant keep all
// processors of a small machine busy, and each request of another one waits for a tenth of a
// second. Here a tenant that is alone may use everything. While others send requests, too, it may use
// what they leave, but for a reserve, so that theirs begin at once.
//
// A limit on turns at a time leaves a small machine busy without a pause. So turns are timed, too: beside others, a tenant
// computes for a quarter of the time that the processors have. What it has not used it may use at once, for half a second; what it
// has used too much, also while it was alone, it waits for, for a quarter of a second at most.
//
// No tenant waits for another one's turn to end: each may always have its own share of turns, of one processor
// at least, until it has used its time.
package turns
