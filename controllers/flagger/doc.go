// Package flagger has no code: its module pins the version of flagger, and testdata has what the test applies.
package flagger
