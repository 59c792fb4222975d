// Package grammar makes small schemas, objects of them and texts from nothing, systematically. What it can make is this
// grammar; tables of package coverage count it by keyword, class, position, format, written form of numbers and oddity.
//
//	case      = schema with keyword ∈ Keywords, value of the keyword ∈ Classes, position ∈ Positions
//	keyword   = every field of JSONSchemaProps, the forbidden ones included, and an unknown one
//	class     = own | number (zero, -0, 1.0, 1e2, fraction, 2^53, 2^63, 2^64, huge, tiny, overflow, …) | null | bool |
//	            string | array (empty, of strings, of schemas, of others) | object (the same) | duplicate | absent
//	own       = what the keyword is made for: type, bound, length, format, pattern, enum, branch*, schema, name*, …
//	position  = root | property | item | additionalProperties | allOf | anyOf | oneOf | not (each at a property and at
//	            items, two deep, and with the keyword below properties or items of the branch) | embedded resource |
//	            list-map key | list-map value | set item | nullable | int-or-string | preserved
//	companion = type, items, properties and up to two further keywords beside it
//
//	object    = { member* }, each member for its schema: at, just below and just above every bound and length; listed
//	            values and their variants; texts; items and pairs of items that are equal in other written forms
//	number    = written form: 0 -0 0.0 -0.0 1 1.0 1e0 10E-1 1e+0 100e-2, around 2^53, 2^63, 2^64, 30 digits, 1e400, 5e-324
//	text      = runes of one to four bytes, raw and escaped, lone surrogates, U+FFFD, invalid UTF-8, at the length edges
//	format    = valid text of the format | one or two edits of it | trap | text of another format | garbage
//	pattern   = RE2: literal, class, posix class, unicode class, group, alternative, repetition, anchor, flag, escape |
//	            what RE2 refuses (look-around, backreference, repetition above 1000, depth) ; texts by expanding it
//	oddity    = an object in other JSON: white space, escapes, order, duplicate keys, invalid UTF-8, BOM, trailing bytes,
//	            broken literals and structure, depth
//
// A seed gives the same case, the same objects and the same texts every time. The seeds of one Round have every keyword
// with every class.
package grammar
