// Package restmapping says which resource a key in etcd belongs to, and how requests
// for its objects are made.
//
//	/example.com/widgets/shop/a  ── ByKey ───▶ widgets.example.com, namespace shop, name a
//	example.com/v1, Widget       ── ByOwner ─▶ widgets.example.com
//	example.com/v1, Widget       ── Mapper ──▶ widgets.example.com in v1, if that is served
//	                                Namespaced ▶ all of them that have namespaces
//
// Those who work on objects of all kinds ask here and not in discovery: the
// answer costs a lookup in the catalog, however many definitions there are, and
// nothing has to be started for a kind nobody uses.
//
// # Invariants
//
// Requests are made in the version that objects are stored in, so that nothing has
// to be converted that was written under the current definition. If that version is
// not served they are made in the first that is, in the order of discovery.
package restmapping
