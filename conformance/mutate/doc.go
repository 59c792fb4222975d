// Package mutate makes schemas that are almost, or not at all, structural. It takes a part of a real schema as the root
// of a new one and applies one to four mutations from a table that covers every rule the reference has, right and wrong.
//
// A mutant is a function of the pool and the seed: the same pool and the same seed give the same bytes.
//
// CEL: compiling rules is slow and is no subject here, so most mutants lose the x-kubernetes-validations of the schema
// they are made from before anybody sees them. Rules that a mutation adds stay. What remains is handed to both sides as
// it is, and the oracle takes the errors of compilation and cost out of its verdict.
package mutate
