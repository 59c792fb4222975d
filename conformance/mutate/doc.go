// Package mutate makes schemas that are almost, or not at all, structural. It takes a part of a real schema as the root
// of a new one and applies one to four mutations from a table that covers every rule the reference has, right and wrong.
//
// Vary and Enrich make schemas that are most likely structural: Vary adds what normalization reads,
// Enrich everything that restricts values, CEL rules included (templates.go).
//
// CRDs makes whole CRDs, before and after a change, around such schemas.
//
// A mutant is a function of the pool and the seed: the same pool and the same seed give the same bytes.
//
// CEL: compiling rules is slow, so most mutants lose the x-kubernetes-validations of the schema they are made from before
// they are returned. Rules that a mutation adds stay.
package mutate
