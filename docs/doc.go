// Package docs holds the pages about rules, for the program to show.
//
// docs/rules/ID.md is the page of the rule with that identifier: why it exists,
// an example that breaks it and one that keeps it, which a test runs if they are
// about definitions, and how to mend a violation. The first paragraph of the last part is also what
// commands print as the fix.
//
// The tests of this package also hold other pages to what they say: the Go code
// of guides is compiled and run, the arithmetic of scale.md is done again, and links
// lead somewhere.
package docs
