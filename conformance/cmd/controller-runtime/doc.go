// Command controller-runtime runs the suites of controller-runtime with kube-apiserver and with our server in its place, and prints what
// passes with each of them.
//
// With -tenant the suites run in tenants of our server, too, and their results are compared with those of the server itself. A suite talks
// to the address that envtest or espaliertest gives it. The build replaces one file of these two, so that they make the tenant and give its
// address; the suites stay as they are.
package main
