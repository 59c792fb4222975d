// Package finding has the common types of all tools that report problems: a [Finding] has a
// severity, the identifier of a check, a place and a text.
//
// The engine, package cel, package crd and its tools return findings, and list their checks as
// values of type [Check].
package finding
