// Package cel evaluates the CEL rules of a schema, its
// x-kubernetes-validations.
//
// # Data flow
//
//	schema bytes ── Check ──▶ findings, with the position inside the rule
//	             └─ Costs ──▶ what each rule may cost, and which bound would make it cheaper
//	*espalier.Schema ── Compile ──▶ *set ── Validate or Admit of the schema ──▶ violations
//
// A set is small: it has only the root of the plan. The rules of a node are
// compiled when the first value of it is validated, and cached by the content of
// the node, so that equal rules on equal parts of different schemas share one
// program.
//
// # Environment
//
// The language is the one of the API server: its libraries come from
// k8s.io/apiserver/pkg/cel/environment, by compatibility version. Only the types
// of schemas are declared differently. The API server extends the environment
// twice for every schema with rules, and declares all types below it. Here all
// rules share one environment per version, and a type provider answers the few
// questions of the type checker from the plan.
//
// # Values
//
// Rules read the bytes of the document through its index. Values, their errors
// and their oddities are those of the API server's conversion of decoded
// objects; no object is decoded.
//
// # Cost
//
// The API server counts the cost of every step of every evaluation. Counting
// takes longer than evaluating. Here each rule first gets an upper bound of its
// cost, from the sizes of the document and its parts. As long as the sum of the
// bounds is within the budgets, no rule can have exceeded one, and nothing is
// counted. If the sum exceeds a budget, evaluation of the object starts again and
// counts as the API server does. The bound is not the API server's static estimate,
// which is no upper bound (see bound.go), but is calculated in the same way.
//
// # Invariants
//
//   - Results, texts included, do not depend on whether cost was counted.
//   - Nothing of a document outlives a run, except copies in violations.
//   - Access to a member of an object or an item of a list takes logarithmic
//     time at most, however the document is written.
package cel
