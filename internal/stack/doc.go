// Package stack makes room on a goroutine's stack.
//
// A goroutine begins with a small stack, which is doubled, and copied with all
// its frames, whenever it is too small. Deep in the handlers of a request that
// is a tenth of the work of a get. Whoever starts at the shallow end calls
// Reserve, and the stack grows once, with nothing to copy.
package stack
