// Package catalogtest opens the storage of CRDs on the etcd of a test.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//	…
//	crds := catalogtest.Open(t)
//	crds.Create(t, catalogtest.CRD("things", "example.com")) ──▶ etcd ──▶ catalog.New(crds.Storage)
//
// # Invariants
//
// The storage does not validate and does not set a status: the catalog reads exactly
// what a test writes.
package catalogtest
