// Package collect keeps Go's garbage collector from running all the time while the
// heap is small.
package collect
