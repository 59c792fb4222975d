// Package answer compares what two API servers answer to the same request.
//
//	response ─▶ Answer ─▶ Normalizer: values that each server chooses become slots ─▶ Compare ─▶ Outcome: misses by rule
//
// The first server is the reference ("there"), the second one is under test ("here"). A miss names the rule that it breaks: paths have
// no indices and messages no values, so that misses of one cause have one rule.
package answer
