// Package espaliertest is an API server for tests, in the test's own process.
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
// Every call of Start returns a world of its own: nothing is in it but what is
// there in every cluster, and the definitions asked for. Tests may run in
// parallel. A world ends with its test.
//
//	process ─┬ etcd, for as long as there is a world, or with Main for all tests
//	         ├ world 1: server on a port, keys below /1
//	         └ world 2: server on a port, keys below /2
//
// Explore runs a test under schedules of faults, as a correct API server has them:
// late events, conflicts, lost answers, stale reads.
//
// Who uses controller-runtime's envtest can keep the form: see Environment.
package espaliertest
