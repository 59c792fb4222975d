// Package forms writes CRDs around a schema, in every form in which a CRD can say the same thing.
//
//	crd      = v1 | v1beta1
//	v1       = scope, preserve, one version with its schema and subresources
//	v1beta1  = scope, preserve, ( everywhere | within )
//	everywhere = spec.validation and spec.subresources, ( spec.version | spec.versions of one name )
//	within   = spec.versions of one name, with its schema and subresources
//	scope    = "Namespaced" | "Cluster"
//	preserve = preserveUnknownFields: true | false, or left out
//	subresources = [ status ] [ scale ]
//
// The paths of a scale lead to fields of the schema that can hold what a scale reads, if it has such fields, and
// sometimes to those that cannot. The first form that Of returns for a schema is a function of the seed.
package forms
