// Package authority makes certificates: a CA, and what it signs for servers and
// clients. It is for servers that nobody has given certificates to: those of
// `espalier dev`, of espaliertest and of our own tests.
package authority
