// Command release builds what is published of a commit: a static binary for each
// platform, packed with the licence, the README and manual pages, a software bill of materials of
// each, and the checksums of all.
//
//	git ──▶ version, commit, time
//	          │
//	          ▼            ┌──▶ espalier_V_OS_ARCH.tar.gz (.zip) ─┐
//	go build, by platform ─┤                                      ├──▶ SHA256SUMS
//	                       └──▶ espalier_V_OS_ARCH.cdx.json ──────┘
//
// It is in the module of tools, and not in that of the program, so that programs
// that import Espalier do not get its libraries.
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
