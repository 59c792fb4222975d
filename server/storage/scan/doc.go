// Package scan reads the values of a large folder of etcd page by page, at the cost of
// the page.
//
// etcd goes through all keys from the beginning of a page to the end of the folder if a
// read has a limit, in order to count them: half a second of its processor time for each
// page of a million objects. It does not count what it streams, and it stops when the
// reader has gone:
//
//	[begin, end) ── stream ──▶ values ── enough ──▶ the stream is cancelled
package scan
