// Package jsondoc is the one parsed form of a JSON document: its bytes and a
// compact index into them.
//
// # Data flow
//
//	bytes ── Parse ──▶ Doc (bytes + tape) ── walk ──▶ Writer ──▶ canonical bytes
//
// Parse validates the JSON and builds the tape in one pass. The tape has one
// 16-byte entry for each value and each key, in document order, and holds no
// pointers; it lives in pooled memory. A [Value] is a position on the tape.
//
// # Semantics
//
// A document means what upstream's decoder (sigs.k8s.io/json into
// map[string]any) makes of it: integers that fit an int64 are integers, every
// other number is a float64 and must be finite; of duplicate keys the last
// wins; keys are case-sensitive; invalid UTF-8 and lone surrogates read as
// U+FFFD; nesting deeper than 10,000 is an error.
//
// # Canonical form
//
// Canonical JSON is byte for byte what encoding/json.Marshal writes for the
// decoded value: compact, keys sorted by their bytes, no duplicates, shortest
// numbers, and its choice of escapes. Parse notes for every value whether its
// bytes already are canonical, so that a Writer can copy runs of them.
package jsondoc
