// Package sitetest serves, in a test, what a handler makes of the definitions in
// a catalog.
//
//	definitions on etcd ──▶ catalog ──▶ handler ──▶ http://…
//	       ▲                                          │
//	     Create ◀────────────── test ──────────────▶ Do
package sitetest
