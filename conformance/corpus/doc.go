// Package corpus collects real CustomResourceDefinitions: from pinned Go modules that ship them (modules.txt), and from
// an archive of more of them when there is one. Tests that must not depend on either have CRDs around a few schemas that
// are part of this repository (seeds).
//
//	modules.txt → go mod download → YAML files ┐
//	                    crds.tar.gz → YAML files ┴→ documents → CRDs → versions → distinct schemas
//
// Converting YAML takes most of the time, so the CRDs and schemas of each source are kept as JSON in the user's cache directory
// under a key made of the module's version, or the archive's hash, and the layout's version. A source's YAML that does
// not parse (templates, mostly) is counted and skipped.
package corpus
