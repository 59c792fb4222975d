// Command controller-runtime runs the suites of controller-runtime with kube-apiserver and with our server in its place, and prints what
// passes with each of them.
package main
