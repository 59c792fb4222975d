// Package scan reads large folders of etcd without a count of their keys: [Page] at the
// cost of the page, and [All] in one request.
//
// etcd goes through all keys from the beginning of a page to the end of the folder if a
// read has a limit, in order to count them: half a second of its processor time for each
// page of a million objects. It does not count what it streams, and it stops when the
// reader has gone:
//
//	[begin, end) ── stream ──▶ values ── enough ──▶ the stream is cancelled
//
// [Stream] is that reading, for others that read pages in another way. etcd sends a piece
// when the reader has taken the one before, and reads it then: a slow reader keeps neither
// memory nor a transaction of etcd.
package scan
