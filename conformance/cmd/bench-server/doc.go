// Command bench-server measures upstream's server, ours and bare etcd alternately in one run on one etcd: create, get, update, list, watch list and
// many watchers, with the schema work of real CRDs. It ends with one line of ratios.
package main
