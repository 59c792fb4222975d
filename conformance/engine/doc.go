// Package engine asks Espalier the questions that package oracle asks the reference, and answers in the same types. The
// comparisons use Espalier through this package only.
package engine
