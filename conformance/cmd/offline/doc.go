// Command offline gives generated objects of built-in kinds to `espalier validate` and to our server, and prints where they differ.
// With -files it keeps the files, for other programs.
package main
