// Command benchlsp measures the language server as an editor sees it:
//
//	corpus ──▶ 300 CRDs, 200 KB of objects ──▶ espalier lsp ── a key, diagnostics, a key, ... ──▶ p50, p99, memory
//
// It starts the real program, opens the file, and types. The time of a key is that from the change to its
// diagnostics. Memory is the resident set of the program, as the kernel counts it, at its largest
// while keys were typed.
//
// With -compare it also checks that the server reports what `espalier validate` reports, for that
// many generated documents. With -edits it types random edits for that time, and checks at
// the end that the server has the same text.
package main
