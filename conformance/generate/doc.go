// Package generate writes JSON objects for a schema: valid ones of a wanted size, nearly valid ones, and hostile ones.
//
//	schema bytes → Compile → *Plan; Plan.Append(seed, options) → object bytes
//
// It writes bytes directly, with its own random formatting, because most of what it is for cannot pass through an
// encoder: duplicate keys, odd escapes, invalid UTF-8, numbers of every form, broken documents. It has to be fast, since
// a run makes a million objects: a plan holds everything that can be prepared, and hostility costs a countdown per
// value. The same plan, seed and options give the same bytes.
//
// Valid means: JSON, no unknown fields, no nulls, types as the schema wants them, enums, formats and simple limits kept.
// CEL rules are not looked at; allOf, anyOf, oneOf and not only with the option Resolve, and in the mode Breach.
//
// The mode Breach is for validation: objects that are valid but for one value or two, which miss what their schema demands
// narrowly or grossly. Edit changes an object as a client may.
package generate
