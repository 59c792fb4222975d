// Command bench-size builds the programs as releases are, and prints their sizes, and the memory that the kernel counts for the smallest
// commands.
package main
