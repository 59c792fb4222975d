// Command bench-conversion measures conversion by rules of a CRD: the time for one object of 2 KB, a list of 10,000
// objects in another version than the stored one, and the same list where a webhook converts by the same rules.
//
//	conversion.Plan ──▶ µs for 2 KB
//	etcd ◀── espalier serve ─┬▶ a CRD with rules: list in v1, list in v1alpha1
//	                         └▶ a CRD with a webhook: list in v1alpha1 ──▶ the webhook, in this process
//
// Lists are measured in turns, as clients ask for them by default, and read from etcd (resourceVersionMatch=Exact of a
// revision before the server was started), where each object is converted again.
package main
