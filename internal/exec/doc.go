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
// each over the result of the one before. Here one walk does all four steps for
// one member at a time, and writes the result. That is possible because each step
// depends only on a value and its schema, so the walk knows what the earlier steps
// would have done to it. The exception is the metadata of embedded resources whose
// schema specifies fields: there the steps run one after another, each on its own
// document.
//
// # Metadata
//
// The metadata of objects and of embedded resources gets a round trip through
// metav1.ObjectMeta upstream. Here, well-formed metadata is handled on the index;
// anything unusual goes through apimachinery's own type, so that error texts and
// oddities are upstream's.
//
// # Validation
//
// The checker (validate.go) decides whether an object is valid; it allocates
// nothing and stops at the first violation. If the object is invalid, the explainer
// (explain*.go) collects its errors, in upstream's words and with upstream's choice
// among the branches of allOf, anyOf and oneOf. A fuzz target checks that both agree.
//
//	document ─▶ checker ─ valid ──────────────────────────────────▶ rules
//	               └───── invalid ─▶ explainer, with the old document ─▶ rules, unless blocked
//
// Updates are validated on the two documents side by side (correlate.go), and
// ratcheted: errors in a value that equals the old one are dropped. Package cel
// evaluates CEL rules; Visit (rules.go) knows where they apply.
package exec
