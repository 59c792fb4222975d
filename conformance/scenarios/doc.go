// Package scenarios holds tests with what people run: kubectl, client-go's informers and controller-runtime, and with what attackers send, against a server process on a real etcd.
//
//	TestMain: etcd, `go build ./cmd/espalier`, with -race unless the tests are short ─▶ each test: a server with a prefix of its own, or the shared one ─▶ kubectl and clients ─▶ the server's log is searched for races
//
// ESPALIER_BIN names a binary to test instead of the one built here. With SCENARIO_SERVER=upstream those tests run against upstream's server that need neither
// discovery nor published schemas, which it has not: so the tests themselves are tested.
package scenarios
