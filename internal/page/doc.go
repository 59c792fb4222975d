// Package page documents definitions for people: as Markdown, as one HTML page,
// and, one field at a time, for a terminal.
//
//	crd.CRD ── outline ──▶ fields ──┬── Markdown
//	                                       ├── HTML
//	                                       └── Explain
//
// The three say the same. What a schema says about a field is put into words
// once, in limits.go; the outputs only arrange it.
//
// Lists and maps are no levels of their own, as in kubectl explain: the fields of
// the items of spec.steps are spec.steps.name and so on.
//
// Definitions are hostile input. Everything in them is text to the outputs, never
// markup. Output is linear in the size of the definition: what is nested deeper
// than maxDepth is left out, with a note, and paths longer than maxPath are not
// written.
package page
