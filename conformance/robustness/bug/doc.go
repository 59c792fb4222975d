// Package bug has bugs that API servers and etcd have had, each as a small change of
// today's sources, ours or those of a library. The harness must find each
// of them.
//
// A bug is never in the tree: the compiler is given other contents for a file
// (go build -overlay), and the result is a server that is wrong in exactly one way.
package bug
