// Package releases has the CRDs of many releases of the same projects, for comparing each CRD with its next version.
//
//	modules.txt ── go mod download, one at a time ──▶ YAML files with CRDs ──▶ cache ──▶ Pairs: a CRD in two releases
//
// A module is deleted as soon as its CRDs are extracted: all of them together take tens of gigabytes, their CRDs take
// a few hundred megabytes. The cache is in the user's cache folder.
package releases
