// Command planted shows that the comparison with upstream notices when the engine is wrong. It draws bugs of a list by a seed,
// compiles the comparison with each of them, and runs it until it reports a difference.
//
//	go run ./cmd/planted -seed 7
//
// It fails if a bug stays hidden for longer than the limit. With -list it prints the bugs, with -bug only some are
// planted.
package main
