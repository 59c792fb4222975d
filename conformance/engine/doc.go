// Package engine asks Espalier the questions that package oracle asks the reference, and answers in the same types. It
// is the only package of this module that the comparisons know Espalier through.
package engine
