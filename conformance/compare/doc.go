// Package compare hands the same schemas and objects to Espalier (package engine) and to the reference (package oracle)
// and reports where they differ.
//
//	Verdict(schema)            both sides' errors, as multisets
//	Pair.Normalize(object)     both sides' bytes, dropped fields, refusals
//	Shrink(difference)         the smallest schema and object, found greedily, that still differ
//	Run(config)                all of it over a corpus, mutants and generated objects, in parallel, with counts
//
// The reference walks Go maps, so which of several errors it returns first varies from run to run. A difference counts
// only if the reference does not agree with Espalier in any of a number of tries.
package compare
