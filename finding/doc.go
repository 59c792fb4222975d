// Package finding has the vocabulary in which every tool says what it found: how grave it is, by
// which check, where, and what is wrong.
//
// The engine, package rules, package crd and its tools return findings of this type, and describe
// what they look for by values of type [Check].
package finding
