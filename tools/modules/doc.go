// Command modules keeps the released modules of this repository in order. They require each other at the version of
// the next release, which no proxy has, and have no replace lines; go.work joins them for development.
//
//	go run ./modules tidy         tidies the go.mod of every module
//	go run ./modules tidy -check  fails if one is not tidy
//	go run ./modules version v1   sets the version that the modules require of each other
//	go run ./modules proxy DIR    writes what a module proxy would serve for that version
package main
