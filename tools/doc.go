// Package tools holds no code. Its module pins the programs that `make verify`
// runs, with their whole dependency graph in go.sum, so that a developer's
// machine and continuous integration lint with the same bytes and the engine's
// own go.mod stays free of them.
package tools
