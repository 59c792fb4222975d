// Package compile checks a schema as written and lowers it to a plan.
//
// # Data flow
//
//	*syntax.Schema ── Check ──▶ []Finding       (errors and warnings)
//	               └─ Lower ──▶ *plan.Node      (when no Finding is an error)
//
// # Check
//
// Check decides whether a schema is structural (KEP-2335) and whether upstream
// accepts it in a new CRD. Its results, field paths and texts are upstream's. The
// table [Checks] lists all checks, each with its identifier, an explanation and
// the document that requires it.
//
// A Finding is an error exactly if upstream refuses the schema for it. Demands of
// the documents that no cluster enforces are warnings, so that Check refuses no
// CRD that runs today.
//
// Upstream checks structure and OpenAPI in two passes, which visit different parts
// of the schema. Here it is one walk; the place of each schema (see place) says
// which of the two passes visit it. As upstream, the checks of structure apply
// only if the whole schema can be converted to a structural one (see
// checker.unsupported).
//
// Defaults are validated by exec's explainer on a second plan, because upstream
// validates them with another form of the schema than it validates objects with
// (see LowerOptions.Defaults). Validate tells package cel which of them are valid,
// so that it can evaluate CEL rules on them.
//
// Cost is linear in the size of the schema. Paths are kept as a stack and
// rendered only for a Finding, and the total of what is rendered is bounded.
package compile
