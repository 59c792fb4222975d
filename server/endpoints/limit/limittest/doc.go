// Package limittest has clients that send requests and do not read the answers:
// they are what limits on memory and time are tested with.
package limittest
