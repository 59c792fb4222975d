// Command release builds what is published of a commit: a static binary for each platform, packed with the licence, the
// README and manual pages; packages for Debian and RPM; an image; manifests for Homebrew and krew; a software bill of
// materials of each binary; a statement of what was built of what; and the checksums of all.
//
//	git ──▶ version, commit, time
//	          │
//	          ▼            ┌──▶ .cdx.json
//	go build, by platform ─┼──▶ .tar.gz, .zip ──▶ espalier.rb, espalier.yaml ─┐
//	                       ├──▶ .deb, .rpm ───────────────────────────────────┼──▶ provenance.json ──▶ SHA256SUMS
//	                       └──▶ image.tar ────────────────────────────────────┘
//
// It is in a module of its own, so that programs that import Espalier and the linter that tools pins do not get its
// libraries. docs/design/0015-release.md says what they are for.
//
// # Invariants
//
// The same commit and version, built with the same release of Go, give the same
// bytes, on any machine and in any folder: nothing of what is written depends on the
// clock, on names of users and folders, on the environment, or on what was built
// before. `release -twice` shows it.
//
// A bill of materials is read out of the binary that it is of: it lists what was
// linked, and not what a go.mod asks for.
package main
