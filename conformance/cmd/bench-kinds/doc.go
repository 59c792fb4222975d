// Command bench-kinds measures what the built-in kinds cost: kube-apiserver, our server with the kinds of the control plane and with all of them,
// each on an etcd of its own, in turns in one run. For each: time and CPU until it is ready, idle memory, live heap, and CPU for creating and
// updating a Pod and a ConfigMap. Beside them it starts espaliertest with all kinds and one CRD, in a new process each time. It ends with one line,
// and fails if all kinds take more than 40 MB of memory.
package main
