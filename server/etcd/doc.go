// Package etcd runs an etcd of one member in the process, for programs that need
// a server without a second program: `espalier dev`, tests, programs that embed
// the server. It is etcd's own package embed, with settings for that use.
//
//	server ──unix socket──▶ etcd ──▶ folder
//
// # Invariants
//
// Only this user can reach it: it listens on sockets in a folder that no other
// user may enter, and on no port.
//
// A folder has one etcd at a time: a second Start says so instead of waiting.
package etcd
