// Package evidence says how large the values of a field really are, as far as its schema
// shows it: by format, pattern, enum, default, example, name and description.
//
//	keyword, name, schema ──▶ Of ──▶ a range for a bound, and the reason
//
// Advice about bounds starts here, so that a proposed bound does not refuse values that
// are in use: an ARN is longer than 64 characters. Where several reasons apply, the
// largest size counts, unless the schema itself excludes it.
package evidence
