// Package lsp is the language server: it shows in editors what the commands check
// and validate find, and completes and explains fields.
//
// # Data flow
//
//	editor ── didChange ──▶ text ── chunks ──▶ documents ── Engine ──▶ diagnostics ──▶ editor
//	                          │                                 ▲
//	                          └── outline ──▶ path ── schema ───┴── CRDs: open files, folders, settings, clusters
//
// A file of several documents is cut into chunks, one for each document. Only changed
// chunks are parsed and validated again. The outline is a tolerant reading of a chunk's
// lines: it finds the path at the cursor also while the YAML is half typed.
//
// The Engine is the code of the commands. This package does not decide what is wrong
// with a document.
//
// # Invariants
//
//   - Positions of the protocol count UTF-16 code units. Everything else here counts bytes.
//   - Notifications are processed in order. Requests run at the same time as others, and see the text
//     as it was when they arrived.
//   - Published diagnostics belong to the newest version of a file that the editor has sent.
package lsp
