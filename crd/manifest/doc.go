// Package manifest reads files of Kubernetes objects: YAML and JSON, one or many
// documents to a file, lists, folders, patterns and standard input.
//
// # Data flow
//
//	paths ── Expand ──▶ files ── Parse ──▶ documents (JSON + marks) ── Split ──▶ objects
//
// A document becomes the JSON that kubectl would send. Parse does not keep the YAML
// tree. It keeps a mark for every key and value: 12 bytes that map an offset in the
// JSON to the position in the file. Findings of the engine have such offsets, or
// JSON pointers.
//
// What a plain YAML scalar means is decided by sigs.k8s.io/yaml, the library
// that kubectl uses: "yes" is true and 010 is 8.
package manifest
