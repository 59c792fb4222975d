// Package espalier checks structural schemas, and normalizes and validates custom
// resources with them.
//
// It is the engine of the Kubernetes resource model, without Kubernetes: it
// compiles the openAPIV3Schema of a CustomResourceDefinition (CRD) once, and runs
// it on the bytes of objects.
//
//	schema bytes ── Check ──▶ findings
//	schema bytes ── Compile ─▶ *Schema ── Normalize(object bytes) ─▶ canonical bytes, report
//	                                  ├─ Validate(canonical bytes, old bytes) ─▶ violations
//	                                  └─ Admit(object bytes, old bytes) ─▶ both
//
// # Terminology
//
//   - A schema is structural if it specifies all types and fields outside allOf,
//     anyOf, oneOf and not (KEP-2335).
//   - To prune is to remove fields that the schema does not specify (KEP-2332).
//   - To default is to fill in a missing field, or one that is null and may not
//     be, with the value its schema gives.
//   - To coerce is to convert metadata to the form of Kubernetes' ObjectMeta.
//   - To normalize is to prune, coerce and default, in the order of the API server.
//   - To validate is to find the errors of an object. Updates are ratcheted:
//     errors in values that the update does not change do not fail it.
//   - Rules are the schema's CEL rules (x-kubernetes-validations); package crd/cel
//     compiles them. It is separate so that programs without CEL rules do not
//     link CEL.
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
// Schemas and objects may come from untrusted clients. Work is linear in the size
// of the input, depth and size are bounded by Limits, and nothing panics.
package espalier
