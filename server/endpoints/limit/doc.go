// Package limit bounds what clients hold without doing anything: connections,
// answers that they do not read, and watches.
//
//	connection ─▶ Listener: how many per address and in all, how long a write may be blocked
//	request    ─▶ Watches: how many a user may have open
//	answer     ─▶ Guard: how long a write may be blocked by the client's HTTP/2 window
//
// # What it costs
//
// A connection: 150 bytes and a lock when it is opened and closed; a write to it, a
// clock reading, and a deadline every half of the timeout. A watch: a lock when it
// begins and ends. A write of an answer: two atomic operations; those of more than
// 4 KB, and watches, have a timer while they are written to. The end of an answer
// over HTTP/2: a deadline, 3 allocations of net/http.
package limit
