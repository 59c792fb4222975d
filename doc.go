// Package espalier checks structural schemas, brings custom resources into the
// form that they specify, and validates them.
//
// It is the engine of the Kubernetes resource model, without Kubernetes: what
// a CustomResourceDefinition's openAPIV3Schema says about an object is
// compiled once and then run on the bytes of objects.
//
//	schema bytes ── Check ──▶ findings
//	schema bytes ── Compile ─▶ *Schema ── Normalize(object bytes) ─▶ canonical bytes, report
//	                                  ├─ Validate(canonical bytes, old bytes) ─▶ violations
//	                                  └─ Admit(object bytes, old bytes) ─▶ both
//
// # Terminology
//
//   - A schema is structural if all types and fields of an object are apparent
//     without understanding its logical junctors (KEP-2335).
//   - To prune is to remove fields that the schema does not specify (KEP-2332).
//   - To default is to fill in a missing field, or one that is null and may not
//     be, with the value its schema gives.
//   - To coerce is to bring metadata into the form of Kubernetes' ObjectMeta.
//   - To normalize is all of these, in the order of the API server.
//   - To validate is to find what is wrong with an object. On a change, what
//     was wrong before and has not changed is forgiven: that is ratcheting.
//   - Rules are the schema's x-kubernetes-validations, in CEL; package rules
//     compiles them. They are separate so that who has none does not link CEL.
//   - Canonical JSON is what encoding/json writes for the decoded value:
//     compact, keys sorted, without duplicates.
//
// # Fidelity
//
// For the same input the results equal those of k8s.io/apiextensions-apiserver
// ("upstream"). Each intended difference is listed in
// conformance/DIVERGENCES.md, with its reason and the test that pins it.
//
// # Hostile input
//
// Schemas and objects may come from anybody. Work is linear in the size of the
// input, depth and size are bounded by Limits, and nothing panics.
package espalier
