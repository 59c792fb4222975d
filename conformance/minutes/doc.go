// Package minutes does what docs/guides/minutes.md says, word for word, with the programs as they are in the archive of a release, and
// measures how long each path takes.
package minutes
