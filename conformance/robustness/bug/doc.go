// Package bug has bugs that API servers and etcd have had, each as a small change of
// today's sources, ours or those of a library. A harness that does not find them would
// not have found them then.
//
// A bug is never in the tree: the compiler is given other contents for a file
// (go build -overlay), and the result is a server that is wrong in exactly one way.
package bug
