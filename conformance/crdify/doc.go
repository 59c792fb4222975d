// Command crdify runs crdify, pinned by this module, on pairs of CRDs: a JSON object with old and new in each line of
// standard input, and one with the errors and warnings in each line of the output. conformance/cmd/pairs and
// conformance/cmd/compare run it. crdify's dependencies are older than those of the conformance module, so it has a module
// of its own.
package main
