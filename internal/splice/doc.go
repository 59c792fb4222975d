// Package splice edits the text of YAML and JSON files. What an edit does not
// touch stays as it is, byte by byte: comments, order, quotes, indentation and
// line breaks.
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
// The result is read again and compared with what the edits do to the JSON of
// the document: Apply returns either the right text or an error. Anchors,
// aliases and merge keys on the way to an edit are an error, because a change
// there would show in other places.
//
// Edits that do not depend on each other are made at once, whatever documents of
// the text they are in, in a time that grows with the text and the edits. Each
// edit that needs one before it to be done takes another pass over the text.
package splice
