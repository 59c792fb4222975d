// Command kine runs the server on kine, which speaks a part of etcd's API in front of SQLite or PostgreSQL, and prints
// one line for each engine: what passed, what failed, and how fast it was.
//
//	go run ./cmd/kine -engines etcd,sqlite,postgres
//
// Clients count in objects, which they change only if no other client has, and a watch follows. At the end
// each object must have as many changes as were acknowledged, and the watch must have seen each of them in
// order. Then it runs scenarios of conformance/scenarios on the same engine.
package main
