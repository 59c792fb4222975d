// Package search looks for changes of schemas that break objects and that crd/diff does not report.
//
//	corpus parts → Enrich → OLD → Edit → NEW → diff.Compare
//	                         │             │
//	                         └── generate ─┴─▶ objects that OLD stores → NEW: refused? pruned? something else filled in?
//
// An object that OLD stores and NEW refuses, prunes or fills in differently is a counterexample. If diff.Compare reports
// nothing of level Breaking or Risky for writers or stored objects, it is a miss. Espalier validates the objects, since it is
// fast; before a counterexample counts, the reference has to agree on both schemas and both results.
//
// Objects come from both schemas: those of OLD as they are, and those of NEW with a value that misses narrowly what NEW
// demands, since that is what OLD may have allowed.
//
// Edits tighten, widen, restate and replace what a schema says, in about equal parts. A pair is a function of the pool and
// its seed.
package search
