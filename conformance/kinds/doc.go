// Package kinds compares the built-in kinds of two API servers: kube-apiserver ("there") and ours ("here").
//
//	discovery and OpenAPI v3 of kube-apiserver ─▶ Kind ─┐
//	seeds/PLURAL.yaml ──────────────────────────────────┴▶ script of one object: create, update, patch, apply, status, scale, delete
//	                         both servers answer ─▶ answer.Compare ─▶ Report: a line for each kind, misses by rule
//
// The script of an object is a function of the seed of the run, the kind and the number of the object, and of what kube-apiserver
// answers. Objects of a kind are made one after another in a namespace of their own, so that servers see the same order; kinds run at the
// same time, except those that change how other kinds are served.
package kinds
