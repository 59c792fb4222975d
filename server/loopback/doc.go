// Package loopback lets the server be its own client.
//
//	informers, controllers ── client-go ──▶ memory ──▶ the handler of all requests, filters included
//
// Admission plugins, the authorizer and the controllers of a server are
// clients of its API. They reach it through memory: no port, no certificate and
// no token, so that there is nothing that could be stolen or sent elsewhere.
//
// # Invariants
//
// The server knows the client of a request by the connection that it came on. Nothing in
// a request can claim to be the server.
package loopback
