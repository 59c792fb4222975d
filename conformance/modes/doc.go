// Package modes knows the modes of Espalier that the reference lacks, and how to ask the reference about them: it rewrites
// a schema so that the reference does by itself what the mode demands.
//
//	mode                 oracle
//	InheritPreserve      the same schema with x-kubernetes-preserve-unknown-fields written out below where KEP-2332 lets
//	                     it be inherited: in specified fields, items and values without properties of their own
//	Strict               the same schema without enums and fractional bounds, and with formats beside types rather than in
//	                     their place, and a small evaluator of those enums and bounds that compares numbers as numbers.
//	                     The two sides must agree on which objects are valid; their texts differ
//	ValidationOnly       the reference's validator of values, as it serves CRDs with preserveUnknownFields: schemas
//	                     need not be structural
//	typed v1, v1beta1    the reference on the JSON from which the Go value was decoded
//	Kubernetes 1.x       the reference's validation of a CRD with that version as its compatibility version, which is a
//	                     setting of the process: one version at a time
//
// Forms of CRDs, v1beta1 among them, are package forms.
package modes
