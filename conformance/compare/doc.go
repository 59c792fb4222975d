// Package compare hands the same schemas and objects to Espalier (package engine) and to the reference (package oracle)
// and reports where they differ.
//
//	Schema(schema)             both sides' errors about a schema, its defaults and its rules, as multisets
//	CRD(crd, old)              both sides' errors and warnings about a whole CRD, as multisets
//	Costs(schema)              both sides' estimates of what rules cost
//	CostsAt(schema, version)   the same in another compatibility version, with the errors of expressions
//	Pair.Normalize(object)     both sides' bytes, dropped fields, refusals
//	Pair.Validate(object, old) both sides' errors and warnings about an object, as multisets
//	Pair.Admit(object)         our one call against our steps
//	Pair.ValidateRaw, AdmitBoth as Validate and Admit, for bytes of any form, against the reference
//	Pair.Whole(object, old)    our one call against everything that the reference does between request and storage
//	Resources.Request(body)    create, update and status of a resource: decoding, preparation, validation, encoding
//	history                    a CRD over its life: every step is an update of the state that was stored last
//	modes                      options of the engine, each with its own oracle (package modes), compatibility versions
//	Shrink(difference)         the smallest schema and object, found greedily, that still differ
//	Run(config)                all of it over a corpus, mutants and generated objects, in parallel, with counts
//
// The reference walks Go maps, so which of several errors it returns first varies from run to run. A difference counts
// only if the reference does not agree with Espalier in any of a number of tries, and if its answers do not contradict
// each other about what differs.
//
// A difference between validations that a row of DIVERGENCES.md explains is counted by row (explained.go). It is
// explained if the schema has the feature that the row is about, and if both sides agree once it is taken out.
package compare
