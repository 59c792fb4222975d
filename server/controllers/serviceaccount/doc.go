// Package serviceaccount gives every namespace its service account called default.
//
//	a namespace comes, or its account goes ──▶ queue ──▶ create
//
// A controller that asks for a token finds an account to ask for, as in any Kubernetes
// cluster.
//
// # Invariants
//
// Of service accounts, those called default are watched and no others: a million
// of other names cost nothing here.
package serviceaccount
