// Command bench-crds creates the CRDs of the corpus, then copies of them in other groups, on upstream's server and on ours, and measures what an
// idle one costs (memory, goroutines, connections to etcd) and how soon a new one is served, discovered and published.
package main
