// Package lint gives advice about definitions that an API server accepts:
// what is written and does not do what its author expects.
//
// # Data flow
//
//	*crd.CRD ── Check ──▶ findings, each with what to write instead
//
// Every version's schema is walked once, as written. Expressions are parsed,
// not evaluated: what they read is followed through the schema, and what they
// ask with has() or optional syntax is remembered on the way.
//
// # Invariants
//
//   - A rule that is on by default speaks of a definite trap. What is a matter
//     of taste is off, or has severity Info.
//   - What crd.Validate refuses is not repeated here. A schema that cannot be
//     read, or an expression that does not parse, is left alone.
//   - Work is linear in the size of the definition, and so is the memory of the
//     findings: beyond 16 MiB they are left out.
package lint
