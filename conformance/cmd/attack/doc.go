// Command attack runs the attacks of package attack against our server and against kube-apiserver, and prints a table of what was refused.
package main
