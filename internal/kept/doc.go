// Package kept gives packages of this repository what package espalier has and does not export: the index that a
// normalized object keeps, and what validation by an index has found. Types of the public API are not internal.
package kept
