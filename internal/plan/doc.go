// Package plan is the compiled form of a schema: immutable, shared and small.
//
// A plan is a graph of [Node]s. Nodes are made through a [Builder], which
// gives the same node for the same content, whichever schema it comes from:
// `{type: string}` exists once in a process, and so does a PodSpec that two
// hundred CRDs embed. A node is counted by the nodes and schemas that refer to
// it and leaves the table with the last of them.
//
// What a plan does not hold: descriptions, titles, examples and positions.
// They belong to the syntax tree and to publishing.
//
// # Invariants
//
//   - A node never changes after Builder.Node has returned it.
//   - Equal content is the same pointer, while anybody holds it.
//   - Defaults are canonical JSON, pruned, with the defaults below them
//     already applied: inserting one is a copy of bytes.
package plan
