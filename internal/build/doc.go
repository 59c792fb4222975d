// Package build tells what the Go command has written into the program: of which
// commit it is, and of which Kubernetes its libraries are.
package build
