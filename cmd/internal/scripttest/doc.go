// Package scripttest runs scenarios of programs, as testscript does, with a command for exit codes.
package scripttest
