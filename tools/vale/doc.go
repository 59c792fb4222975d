// Package vale holds no code. Its module pins Vale, the linter of prose that
// `make prose` runs, with its whole dependency graph in go.sum. It is not in the
// module above, because it would change the versions that golangci-lint is built
// with. The rules are in .vale/styles/Espalier; the test beside this file shows
// that each finds what it forbids.
package vale
