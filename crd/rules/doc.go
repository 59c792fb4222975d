// Package rules has the rules of the built-in kinds whose rules are Go code: config maps,
// secrets, roles and other kinds of a control plane. The rules of the other built-in
// kinds are data, in crd/kinds.
//
//	Default ──▶ Prepare ──▶ Validate ──▶ Warn
//
// Both the server and the command line call them. What needs a server stays there: the
// user of a request, other objects, expressions of admission policies.
package rules
