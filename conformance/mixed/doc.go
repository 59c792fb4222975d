// Package mixed looks for schemas that change each other's answers.
//
// Compiled schemas share what they have in common, so one schema could get the answers of another that was compiled
// before it. The comparison with the reference compiles one schema at a time and cannot see that. This package compiles
// many schemas that nearly are equal, in random order, keeps all of them in use, asks each about the same objects, and
// compares every answer with the one of a new process that has compiled this schema and no other:
//
//	Run(config)        families of twins → random orders → answers, against those of one process for each schema
//	Answer(in, out)    what such a process does: it reads a Question and writes the answers
//
// An answer is everything that the engine says: findings about the schema, what becomes of objects, and errors and
// warnings about them, new and changed.
package mixed
