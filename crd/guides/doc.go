// Package guides has no code: its tests are the programs that docs/guides/engine.md shows.
package guides
