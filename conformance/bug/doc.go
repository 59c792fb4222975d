// Package bug has bugs, each as a small change of today's sources, ours or those of a library: Server has bugs that API
// servers and etcd have had, which the harness for faults must find, and Engine has wrong answers about schemas, rules
// and objects, which the comparison with upstream must find.
//
// A bug is never in the tree: the compiler is given other contents for a file (go build -overlay), and the result is a
// program that is wrong in exactly one way.
package bug
