// Command search-diff looks for changes of schemas that break objects and that crd/diff does not report: it changes schemas
// of the corpora at random, makes objects that the old one stores, and tries them with the new one. It fails if it finds
// one.
//
//	go run ./cmd/search-diff -minutes 10 -seed 1
package main
