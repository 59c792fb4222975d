// Package etcdtest starts a real etcd for the tests of a package.
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//	…
//	client, prefix := etcdtest.Client(t) // its own prefix for every test
package etcdtest
