// Package restmappingtest runs a test server for CRDs, custom resources and built-in
// resources, without TLS. All requests are authorized.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//	…
//	s := restmappingtest.Start(t, restmappingtest.Options{})
//	s.Define(t, restmappingtest.CRD("widgets", "example.com", true))
//	s.Metadata, s.Dynamic, s.Client ──▶ HTTP ──▶ handlers ──▶ etcd
//
// # Invariants
//
// The only controller is the CRD controller, and there is no admission. A test starts
// the others that it needs.
package restmappingtest
