// Command kinds sends generated objects of all built-in kinds to kube-apiserver and to our server, and prints where the answers differ.
package main
