// Package docs embeds the pages about the checks, for the program to show.
//
// docs/checks/ID.md is the page of the check with that identifier: why it exists,
// an example that fails the check and one that passes it, and how to fix a
// violation. A test runs the examples that are CRDs. Commands print the first
// paragraph of the last part as the fix.
//
// The tests of this package also check other pages: they compile and run the Go
// code of guides, repeat the arithmetic of scale.md, and follow links.
package docs
