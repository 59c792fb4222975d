// Package wire speaks to an API server in bytes, so that a measurement counts the server's work and little of the client's.
//
//	Dial ─▶ Conn (one HTTP/2 connection with a client certificate) ─▶ Do: status and bytes │ Drain: size of the answer │ Watch: lines
//
// A Conn is one worker's: not for concurrent use, except that a Watch may run beside other calls.
package wire
