// Package history makes CRDs and what becomes of them: a CRD that is created or found in storage, and the changes that
// its authors make, one after the other, each to the state that a server has stored after the last change that it accepted.
//
//	history = begin, 3 to 8 steps
//	begin   = a real CRD with its own or with generated schemas | one from nothing, of 1 to 3 versions | an invalid one,
//	          as if stored before a check existed
//	step    = change, or two of them in a fifth of the steps
//	change  = one of Changes: versions that are added, removed, renamed, served or not, stored; the list of stored versions;
//	          fields, types, defaults, rules and formats of schemas; conversion; names; scope; group; selectable fields;
//	          printer columns; subresources; approval; preserveUnknownFields; deprecation; metadata
//
// Most variants of a change are right, and some are wrong in each way that a check looks for. Which change a server accepts
// depends on what came before: kinds may change until the CRD is established, rules that are too costly may stay but not
// come, versions go when nothing is stored in them.
//
// A history is a function of the pool, the seed and the answers of the server.
package history
