// Package requests compares the verdicts of the command line with the server's: its tests send thousands of requests for
// custom resources to the API server over HTTP, and have `espalier validate` judge the same objects.
//
//	testdata/definitions.yaml, mutate ─▶ definitions ─▶ old objects, stored while the schemas are lax
//	generate, mistakes ─▶ create, update, status × Strict, Warn, Ignore ─┬▶ server: code, causes, warnings ─┬▶ to the letter the same?
//	                                                                     └▶ validate -o json: diagnostics ──┘
//
// Where both differ for a reason that is known, a table of causes says so (known_test.go): everything else fails the
// test, and so does a cause that nothing differs by any more.
//
//	go test ./requests -run TestVerdicts -v                      # the requests of seed 1
//	go test ./requests -run TestVerdicts -v -seed 7              # others
//	go test ./requests -run TestVerdicts -v -seed 7 -request 12  # one of them, with all that is said about it
//	go test ./requests -run TestUpstream -v -upstream            # where our server differs from upstream's on them
package requests
