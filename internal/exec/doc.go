// Package exec runs plans on documents. It is the only package that walks an
// object and a schema side by side.
//
// # Data flow
//
//	bytes ─▶ jsondoc.Parse ─▶ one walk over (document, plan) ─▶ jsondoc.Writer ─▶ canonical bytes
//
// # One walk
//
// Upstream prunes, drops nulls, coerces metadata and defaults in four walks,
// each over the result of the one before. Here one walk decides all four for a
// member at a time and writes the outcome at once. That is possible because
// each step looks only at a value and its own schema: what the steps before
// would have done to it is known when it is reached. The exception is the
// metadata of embedded resources for which the schema specifies fields: the
// steps meet there in one value and run one after another, on documents of
// their own.
//
// # Metadata
//
// metadata, of the object itself and of embedded resources, means what a round
// trip through metav1.ObjectMeta makes of it. Well-formed metadata is handled
// on the index; anything unusual goes through apimachinery's own type, so that
// its error texts and oddities are the real ones.
//
// # Validation
//
// Two programs answer one question. The checker (validate.go) says yes or no,
// allocates nothing and stops at the first violation; the explainer
// (explain.go and its neighbours) finds out what is wrong with an object that
// the checker has refused, in upstream's words and with upstream's choice among
// the branches of junctors. A fuzz target makes sure that they agree.
//
//	document ─▶ checker ─ valid ──────────────────────────────────▶ rules
//	               └───── invalid ─▶ explainer, with the old document ─▶ rules, unless blocked
//
// An update is judged on the two documents side by side (correlate.go): what is
// wrong with a value that equals the one before is forgiven. Rules are
// evaluated by package rules; Visit (rules.go) knows where they apply.
package exec
