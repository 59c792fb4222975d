// Package compile checks a schema as written and lowers it to a plan.
//
// # Data flow
//
//	*syntax.Schema ── Check ──▶ []Finding       (what is wrong with it)
//	               └─ Lower ──▶ *plan.Node      (when no Finding is an error)
//
// # Check
//
// Check decides whether a schema is structural (KEP-2335) and fit for a
// CustomResourceDefinition, with the verdict, the field paths and the texts of
// upstream on the creation of one. The rules stand in one table, [Rules], each
// with its identifier, an explanation and the document it comes from.
//
// A Finding is an error exactly if upstream refuses the schema for it. What the
// documents demand and no cluster enforces is a warning: no definition that
// runs today is refused.
//
// The rules about structure and those about OpenAPI are two passes upstream,
// which see different parts of the schema. Here it is one walk; the place of
// each schema (see place) says which of the two see it. The passes are joined
// by one more property: the structural rules apply only if the whole schema
// can be converted to a structural one (see checker.unsupported).
//
// Defaults are judged by exec's explainer on a second plan, because upstream
// judges them with another form of the schema than it judges objects with
// (see LowerOptions.Defaults). Judge tells package rules which of them are in
// order, so that it can evaluate rules on them.
//
// Cost is linear in the size of the schema. Paths are kept as a stack and
// rendered only for a Finding, and the total of what is rendered is bounded.
package compile
