// Package build reads what the Go command has written into the program: its
// commit, and the Kubernetes release of its libraries.
package build
