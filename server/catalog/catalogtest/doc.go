// Package catalogtest opens the storage of definitions on the etcd of a test.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//	…
//	definitions := catalogtest.Open(t)
//	definitions.Create(t, catalogtest.Definition("things", "example.com")) ──▶ etcd ──▶ catalog.New(definitions.Storage)
//
// # Invariants
//
// Nothing is checked and no status is given: what a test writes is what the
// catalog reads.
package catalogtest
