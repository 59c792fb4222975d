// Package manifest reads files of Kubernetes objects: YAML and JSON, one or many
// documents to a file, lists, folders, patterns and standard input.
//
// # Data flow
//
//	paths ── Expand ──▶ files ── Parse ──▶ documents (JSON + marks) ── Split ──▶ objects
//
// A document becomes the JSON that kubectl would send. The YAML tree is gone
// when Parse returns; what stays of it is a mark for every key and value: 12
// bytes that say where in the file the JSON at an offset comes from. Findings of
// the engine carry such offsets, or JSON pointers.
//
// What a plain YAML scalar means is decided by sigs.k8s.io/yaml, the library
// that kubectl uses: "yes" is true and 010 is 8.
package manifest
