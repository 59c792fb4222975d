// Command bench-objects measures whether an operation costs the same however many objects there are: create, get, a page of a list anywhere in it and a list by an indexed label, on our
// server over a new etcd for each number of objects, which are put into etcd directly. With -upstream it
// measures upstream's server beside it.
//
//	size ─▶ etcd, server, CRD ─▶ one object through the server ─▶ its stored bytes, renamed, in bulk ─▶ operations, without and with a watch cache ─▶ ratios to the first size
package main
