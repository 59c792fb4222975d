// Package kro has no code: its module pins the version of kro's controller, and testdata has what the test applies.
package kro
