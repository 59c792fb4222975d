// Package hooks runs the hooks of this repository with the pre-commit framework on ordinary repositories: a kubebuilder project, a Helm
// chart, and one with docker-compose.yml and JSON with comments.
//
//	testdata/NAME ──▶ git repository ──▶ pre-commit run ──▶ exit code, output
//	                                          │
//	this work tree ──▶ git clone ─────────────┘ go install, as for users
//
// Its test runs only with -hooks (`make hooks`): it needs pre-commit, and builds the program.
package hooks
