// Package rules evaluates the CEL rules of a schema, its
// x-kubernetes-validations.
//
// # Data flow
//
//	schema bytes ── Check ──▶ findings, with the position inside the rule
//	             └─ Costs ──▶ what each rule may cost, and which bound would make it cheaper
//	*espalier.Schema ── Compile ──▶ *Set ── Validate or Admit of the schema ──▶ violations
//
// A Set is small: it knows the root of the plan and nothing else. The rules of
// a node are compiled when a value of it is first seen, and kept by the content
// of the node, so that equal rules on equal parts of different schemas are one
// program.
//
// # Environment
//
// The language is the one of the API server: its libraries come from
// k8s.io/apiserver/pkg/cel/environment, by compatibility version. What is ours
// is how expressions meet schemas. The API server extends the environment for
// every schema with rules, twice, and declares all types below it. Here one
// environment per version serves all rules, and a type provider answers from
// the plan what the type checker asks, which is little.
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
// takes longer than evaluating. Here a rule is first bounded: its cost cannot
// exceed what the size of the document and of its parts admits. As long as the
// sum of the bounds is within the budgets, no rule can have exceeded one, and
// nothing is counted. When the sum could exceed a budget, evaluation of the
// object starts over and counts as the API server does. The bound is not the
// API server's static estimate, which is no upper bound (see bound.go), but one
// made with the same rules of calculation.
//
// # Invariants
//
//   - Results, texts included, do not depend on whether cost was counted.
//   - Nothing of a document outlives a run, except copies in violations.
//   - Access to a member of an object or an item of a list takes logarithmic
//     time at most, however the document is written.
package rules
