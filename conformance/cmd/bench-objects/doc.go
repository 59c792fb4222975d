// Command bench-objects measures whether an operation costs the same however many objects there are: create, get and a page of a list on our
// server over a new etcd for each number of objects, which are put into etcd directly.
//
//	size ─▶ etcd, server, CRD ─▶ one object through the server ─▶ its stored bytes, renamed, in bulk ─▶ operations, without and with a watch cache ─▶ ratios to the first size
package main
