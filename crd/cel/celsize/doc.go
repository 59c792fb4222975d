// Package celsize bounds the types that a CEL expression makes, before cel-go's
// checker makes them.
//
//	expression ── parse ──▶ tree ── Bound.TooLarge ──▶ check
//
// A map of a variable to itself has a type of twice the size, and the checker
// writes types out in full:
//
//	[{x: x}].all(a, [{a: a}].all(b, [{b: b}].all(c, …
//
// Twenty comprehensions in each other, or twenty variables of a policy that refer to
// each other like that, have a type of a million names and keep a server busy for
// minutes. Limits of cost do not help: they are about what has been checked.
//
// # Invariants
//
// The size that is found is never less than that of the type, as far as literals make
// it. It takes time linear in the expression.
package celsize
