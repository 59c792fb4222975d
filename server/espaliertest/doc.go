// Package espaliertest runs an API server for tests, in the test's own process.
//
//	func TestController(t *testing.T) {
//		config := espaliertest.Start(t, espaliertest.CRDs("config/crd/bases"))
//		client, err := client.New(config, client.Options{})
//		…
//	}
//
// It is the server of `espalier serve`: real requests over TLS, real etcd,
// validation, defaulting, pruning, conversion, admission webhooks, roles, service
// accounts, garbage collection. There is nothing to download and nothing to start.
//
// Every call of Start returns a new test server. It has the objects of every new
// cluster, and the CRDs that the test asks for. Tests may run in parallel. A test server
// stops at the end of its test.
//
//	process ─┬ etcd, as long as a test server runs, or with Main for all tests
//	         ├ test server 1: a port, keys below /1
//	         └ test server 2: a port, keys below /2
//
// Explore runs a test under schedules of faults, as a correct API server has them:
// late events, conflicts, lost answers, stale reads.
//
// Suites that use controller-runtime's envtest can keep its form: see Environment.
package espaliertest
