// Package mistakes has a table of mistakes in CRDs and custom resources, and of correct ones, each with the documents that a tool needs to
// notice it.
//
//	cases.yaml ─▶ Cases ─▶ Case: CRD, changed CRD, object, old object ─▶ Evaluator ─▶ accepted, or why not
//
// The table does not say which cases are mistakes: an Evaluator does, which is upstream's code (Upstream). The test asks Espalier's engine, too,
// and fails where the two differ.
package mistakes
