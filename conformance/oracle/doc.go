// Package oracle asks the reference implementation, k8s.io/apiextensions-apiserver, what it makes of a schema or an
// object. It calls exported functions only, in the order in which the reference's request handler calls them.
//
// Data flow:
//
//	schema bytes → v1.JSONSchemaProps → internal JSONSchemaProps ┬→ CRD validation → Result
//	                                                            ├→ CEL compilation → Costs
//	                                                            └→ Structural, defaults pruned → *Schema
//	CRD bytes, old bytes → v1, defaulted → internal → CRD validation → CRDResult
//	object bytes → map[string]any → prune, nulls, metadata, default (*Schema) → Outcome
//	object bytes, old bytes → values, embedded metadata, lists, rules (*Schema) → Validation
//	object bytes, old bytes → all of it (*Schema) → Admission
//	body, old bytes → strict decoding, the strategy of the resource or of its status (*Resource) → Answer
//
// The steps of a *Resource are the reference's own code but for the order of its decoder, which it does not export. The
// registry's random and current values, a uid and a time, are fixed.
//
// Two classes of the reference's findings are kept apart in a Result, because they do not decide whether a schema can be
// used to normalize and validate objects:
//
//   - the errors of ValidateDefaults: it validates default values, which is value validation. The oracle calls
//     ValidateDefaults itself and takes its errors out of the whole, as multisets;
//   - the errors of CEL compilation and cost. They are told from the purely syntactic errors of
//     x-kubernetes-validations by type and place (see isCEL): the reference never emits the two at one place.
//
// Nothing that the oracle returns shares memory with what it was given.
package oracle
