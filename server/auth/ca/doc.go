// Package ca makes a CA, and certificates that it signs for servers and clients. It is
// for servers without configured certificates: `espalier dev`, espaliertest and our
// own tests.
package ca
