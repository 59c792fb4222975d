// Package suite runs upstream's own integration tests against a server of our choice.
//
//	module cache ─▶ copy of upstream's module, fixtures/server.go swapped ─▶ one test binary per package ─▶ one process per function ─▶ results
//
// The swapped file (server.go.txt) starts a server process through package launch where upstream starts its own inside the test. Nothing else
// of the tests is changed. A function that cannot pass has a line in reasons.txt.
package suite
