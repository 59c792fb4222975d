// Package tree is a small editable form of a JSON document that keeps every scalar and every key exactly as written.
//
// The mutator edits schemas through it and the shrinker removes parts of reproducers through it, which is why escapes,
// invalid UTF-8, odd numbers and duplicate keys must survive. It reads liberally (any byte may stand in a string) and
// writes compactly. It is not meant for data of more than a few megabytes.
package tree
