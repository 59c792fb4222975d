// Package lint holds the house rules that no general linter knows, as Go
// tests: which way imports point, that every package says what it is, how long
// a file may be, what no file may mention, which words no text for users may
// have, and that the README's examples are tested ones.
//
// Each rule is a function over an [fs.FS] that returns findings, so that its
// own test can show it fails on a small bad tree held in memory. One test runs
// them all over this repository. They read files and parse imports; they
// compile nothing and need no network.
//
// All of it is in test files: nothing else uses it.
package lint
