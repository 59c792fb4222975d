// Package guides has no code: its tests are the programs that docs/guides/embedding.md shows.
package guides
