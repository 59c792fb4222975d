// Package lint finds likely mistakes in CRDs that an API server accepts: parts
// that do not do what their author expects.
//
// # Data flow
//
//	*crd.CRD ── Check ──▶ findings, each with what to write instead
//
// Check walks the schema of every version once. It parses CEL expressions without
// evaluating them: it follows the fields that they read through the schema, and
// keeps track of their tests with has() and optional syntax.
//
// # Invariants
//
//   - A check that is on by default finds definite mistakes. Checks of style are
//     off by default, or have severity Info.
//   - A fix that is code compiles in its schema. A rule with its fix has the same
//     result for every object for which it has one, and the text of a fix says what
//     else it accepts or refuses. A bound is not below what the schema shows to be real
//     (internal/evidence). Without a proof a fix is a sentence.
//   - Findings of crd.Validate are not repeated here. Check skips schemas that it
//     cannot read and expressions that do not parse.
//   - Work is linear in the size of the CRD, and so is the memory of the
//     findings: beyond 16 MiB they are left out.
package lint
