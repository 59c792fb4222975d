// Package flood wears a server down as a single user can, and measures what others notice.
//
//	scenario(server) ─▶ requests in parallel   resident memory, every 20 ms ─┐
//	                    another user's requests, their latency ──────────────┴─▶ an error if a bound is exceeded
//
// `make flood` runs all scenarios, each against a server of its own.
package flood
