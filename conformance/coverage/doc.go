// Package coverage counts what a comparison really compared, as tables of rows and columns.
//
// A comparison is only as good as what its generators produce. A Table has a cell for every combination that a grammar
// promises, so that a combination that is never compared is visible: Missing lists it, and the long form of the
// comparison fails for it.
package coverage
