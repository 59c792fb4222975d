// Package restmappingtest runs a server of all kinds of resources for a test: definitions,
// their objects, and what is built in, without TLS, and whoever asks may do anything.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//	…
//	s := kindstest.Start(t)
//	s.Define(t, kindstest.Definition("widgets", "example.com", true))
//	s.Metadata, s.Dynamic, s.Client ──▶ HTTP ──▶ handlers ──▶ etcd
//
// # Invariants
//
// There is no controller but the one of definitions, and no admission: what a test
// starts is all that acts.
package restmappingtest
