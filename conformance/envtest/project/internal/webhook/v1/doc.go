// Package v1 fills in what trees do not say, and refuses what cannot grow.
package v1
