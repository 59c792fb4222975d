// Package crd works on whole CustomResourceDefinitions.
//
// For now it is about their schemas, as JSON or as the Go types of
// apiextensions.k8s.io: Check and CheckSchema say everything that an API server
// says about one when it is created, CompileSchema prepares one for running.
// They put together what package espalier knows, the schema and its defaults,
// and what package rules knows, the expressions.
package crd
