// Package ordered keeps values sorted.
//
// A [Tree] is a B-tree that knows how many values are below each of its nodes, so that
// it counts the values between two of them without visiting them. [Tree.Snapshot]
// takes constant time: the tree and its snapshot share all nodes, and a later change
// copies the nodes between the root and the value that it changes.
//
//	            ┌──────────┐ the first value below each child, and the number of all
//	            │ a   k  t │
//	            └┬────┬──┬─┘
//	   ┌─────────┘    │  └────────┐
//	┌──┴─────┐   ┌────┴───┐   ┌───┴──┐
//	│ a b c  │   │ k m o  │   │ t v  │ values
//	└────────┘   └────────┘   └──────┘
//
// # Invariants
//
// All leaves have the same depth, and none but the root is empty. Every operation
// visits O(log n) nodes, and those that go through values also the values that they
// give out. A snapshot never changes: any number of goroutines may read it while one
// changes the tree.
package ordered
