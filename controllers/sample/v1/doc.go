// Package v1 has the stored version of Trellis.
package v1
