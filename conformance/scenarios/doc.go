// Package scenarios tests a server process on a real etcd with the clients that users run (kubectl, client-go's informers,
// controller-runtime), and with requests that attackers send.
//
//	TestMain: etcd, `go build ./cmd/espalier`, with -race unless the tests are short ─▶ each test: a server with a prefix of its own, or the shared one ─▶ kubectl and clients ─▶ the server's log is searched for races
//
// ESPALIER_BIN names a binary to test instead of the one built here. With SCENARIO_SERVER=upstream, the tests that need neither discovery nor
// published schemas run against upstream's server, which lacks both. This tests the tests.
package scenarios
