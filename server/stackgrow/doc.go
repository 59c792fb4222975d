// Package stackgrow makes room on a goroutine's stack.
//
// A goroutine begins with a small stack. The runtime doubles and copies it, with all its
// frames, whenever it is too small. Deep in the handlers of a request that is a tenth of
// the work of a get. A goroutine that calls Reserve at its start grows its stack once, with
// nothing to copy.
package stackgrow
