// Command conform compares Espalier with the reference implementation on real and mutated CRDs and schemas and on
// generated objects: errors of whole CRDs and of schemas, costs of CEL rules, normalized objects, what is said about new
// and changed objects, whole requests, the lives of CRDs, and the modes of the engine. Before that it compiles schemas
// that nearly are equal in random orders, many in use together, and compares each answer with the one of a process of its
// own.
//
// The short form needs a few small modules and minutes, and is part of make verify. The long form takes every module and
// the archive, if there is one. Both end with counts; a difference is printed as a small reproducer and makes the
// command fail.
package main
