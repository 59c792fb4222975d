// Package espalier checks structural schemas and brings custom resources into
// the form that they specify.
//
// It is the engine of the Kubernetes resource model, without Kubernetes: what
// a CustomResourceDefinition's openAPIV3Schema says about an object is
// compiled once and then run on the bytes of objects.
//
//	schema bytes ── Check ──▶ findings
//	schema bytes ── Compile ─▶ *Schema ── Normalize(object bytes) ─▶ canonical bytes, report
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
