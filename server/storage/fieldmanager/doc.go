// Package fieldmanager tracks managed fields of objects that are kept as JSON bytes.
//
// The field manager of k8s.io/apimachinery knows objects as Go structs and as
// maps. Its requests arrive in two forms: what the handlers hold is an
// [object.Object], what server-side apply reads from a patch is an
// unstructured object. Both go through the types of structured-merge-diff, and
// everything that comes back is an [object.Object] again.
//
//	*object.Object ─────────┐                          ┌─▶ managedFields
//	                        ├─ Converter ─▶ typed value ┤
//	*unstructured (a patch) ┘                          └─▶ Converter ─▶ *object.Object
//
// # Invariants
//
// Objects are only read. metadata.managedFields never becomes part of a typed
// value of an [object.Object]: it has no manager, and it is often larger than
// the rest.
package fieldmanager
