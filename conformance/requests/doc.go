// Package requests compares the results of the command line with the server's: its tests send thousands of requests for
// custom resources to the API server over HTTP, and have `espalier validate` validate the same objects.
//
//	testdata/definitions.yaml, mutate ─▶ CRDs ─▶ old objects, stored while the schemas are lax
//	generate, mistakes ─▶ create, update, status × Strict, Warn, Ignore ─┬▶ server: code, causes, warnings ─┬▶ to the letter the same?
//	                                                                     └▶ validate -o json: diagnostics ──┘
//
// A table lists the known causes of differences (known_test.go). Every other difference fails the test, and so does a
// cause without a difference.
//
//	go test ./requests -run TestResults -v                      # the requests of seed 1
//	go test ./requests -run TestResults -v -seed 7              # others
//	go test ./requests -run TestResults -v -seed 7 -request 12  # one of them, with all that is said about it
//	go test ./requests -run TestUpstream -v -upstream            # where our server differs from upstream's on them
package requests
