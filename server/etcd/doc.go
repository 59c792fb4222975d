// Package etcd runs an etcd of one member inside of the process, for who wants
// a server without another program: `espalier dev`, tests, programs that embed
// the server. It is etcd's own package embed, with the settings that such a use
// asks for.
//
//	server ──unix socket──▶ etcd ──▶ folder
//
// # Invariants
//
// Only this user can reach it: it listens on sockets in a folder that nobody
// else may enter, and on no port.
//
// A folder has one etcd at a time: a second Start says so instead of waiting.
package etcd
