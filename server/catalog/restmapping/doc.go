// Package restmapping maps keys in etcd, kinds and owner references to resources.
//
//	/example.com/widgets/shop/a  ── ByKey ───▶ widgets.example.com, namespace shop, name a
//	example.com/v1, Widget       ── ByOwner ─▶ widgets.example.com
//	example.com/v1, Widget       ── Mapper ──▶ widgets.example.com in v1, if that is served
//	                                Namespaced ▶ all of them that have namespaces
//
// Controllers that work on objects of all kinds use it in place of discovery: a lookup
// in the catalog costs the same for any number of CRDs, and unused kinds cost nothing.
//
// # Invariants
//
// Requests use the storage version, so that objects written under the current CRD need
// no conversion. If that version is not served, they use the first served version in
// the order of discovery.
package restmapping
