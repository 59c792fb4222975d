// Package conversion converts custom resources between versions by rules in the CRD.
package conversion
