// Package gctune keeps Go's garbage collector from running all the time while the
// heap is small.
package gctune
