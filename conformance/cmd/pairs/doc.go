// Command pairs compares CRDs of consecutive releases with crd/diff, and counts what it decides.
//
//	go run ./cmd/pairs
package main
