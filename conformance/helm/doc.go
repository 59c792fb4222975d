// Package helm pins the version of Helm that renders charts for `espalier diff` in the tests of this package.
package helm
