// Package offline compares `espalier validate` with our server: both are given the same generated objects of built-in kinds.
//
//	kinds.Samples ─┬─▶ files ─▶ espalier validate -o json ─▶ findings ─┐
//	               └─▶ POST ?dryRun=All ─▶ answers ────────────────────┴─▶ Compare: accepted or refused, fields, texts, warnings
//
// What only a server with a cluster can know is counted apart: allocated addresses and ports, other objects, admission.
package offline
