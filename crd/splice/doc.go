// Package splice edits the text of YAML and JSON files. Edits leave the rest of the
// text unchanged, byte by byte: comments, order, quotes, indentation and line
// breaks.
//
// # Data flow
//
//	text ── parse ──▶ spots (where each value begins and ends)
//	                    │
//	edits ──────────────┴──▶ changes of the text ──▶ text ── verify
//
// go.yaml.in/yaml/v3 says where nodes begin. Where they end follows from the
// text and the nodes after them. New values are rendered by the same library,
// in the style of the document around them: its indentation, its flow or block
// form, its line breaks.
//
// # Invariants
//
// Apply parses its result, and compares it with the JSON of the document after the
// same edits: it returns either the right text or an error. Anchors, aliases and
// merge keys on the path of an edit are an error, because the edit would also
// change other places.
//
// Edits that do not depend on each other are made in one pass, also in different
// documents of the text; it takes time linear in the text and the edits. Each edit
// that depends on an earlier one takes another pass.
package splice
