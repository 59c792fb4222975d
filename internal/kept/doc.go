// Package kept hands the index that a normalized object keeps to packages of this repository. The
// public API shows no index: its type is internal.
package kept
