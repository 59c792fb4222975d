// Package docgen documents CRDs for people: as Markdown, as one HTML page,
// and, one field at a time, for a terminal.
//
//	crd.CRD ── outline ──▶ fields ──┬── Markdown
//	                                ├── HTML
//	                                └── Explain
//
// All three have the same content. limits.go words the constraints of a field; the
// outputs only arrange them.
//
// Lists and maps are not levels of a path, as in kubectl explain: the fields of
// the items of spec.steps are spec.steps.name and so on.
//
// CRDs are hostile input. Their texts are always escaped. Output is linear in the
// size of the CRD: fields nested deeper than maxDepth are replaced with a note, and
// paths longer than maxPath are left out.
package docgen
