// Package plan is the compiled form of a schema: immutable, shared and small.
//
// A plan is a graph of [Node]s. Nodes are made through a [Builder], which
// gives the same node for the same content, whichever schema it comes from:
// `{type: string}` exists once in a process, and so does a PodSpec that two
// hundred CRDs embed. A node counts the nodes and schemas that refer to it, and
// leaves the table with the last of them.
//
// A plan has no descriptions, titles, examples or positions. These are in the
// syntax tree, for messages and publishing.
//
// # Invariants
//
//   - A node never changes after Builder.Node has returned it.
//   - Equal content is the same pointer, as long as it is in use.
//   - Defaults are canonical JSON, pruned, with the defaults below them
//     already applied: inserting one is a copy of bytes.
package plan
