// Package flood sends a server as many expensive requests as one user can, and measures its memory and other users' latency.
//
//	scenario(server) ─▶ requests in parallel   resident memory, every 20 ms ─┐
//	                    another user's requests, their latency ──────────────┴─▶ an error if a bound is exceeded
//
// `make flood` runs all scenarios, each against a server of its own.
package flood
