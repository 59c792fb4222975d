// Package envtest checks that tests written for controller-runtime's envtest run on Espalier, by both ways that docs/guides/envtest.md
// shows, and that the code of docs/guides/testing.md does what it says.
//
//	project (kubebuilder's layout) ─┬ as it is ─▶ envtest ─▶ programs of `espalier envtest`, or of KUBEBUILDER_ASSETS
//	                                └ with the guide's diff ─▶ espaliertest.Environment
package envtest
