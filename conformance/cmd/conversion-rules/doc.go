// Command conversion-rules tests the contract of conversion rules: rule sets of real CRDs, as espalier convert --infer
// proposes them, and of made ones, with random objects. Both round trips must be exact, and edits of converted objects
// must be kept.
//
//	go run ./cmd/conversion-rules -sets 200 -objects 10000
//
// It prints each violation with a small object, and fails if there is one. The last line has the counts.
package main
