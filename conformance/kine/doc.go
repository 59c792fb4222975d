// Package kine pins the version of kine, which speaks etcd's API in front of SQLite and PostgreSQL, for `make kine`.
package kine
