// Package pattern matches strings against the regular expressions of schemas.
// Its results are those of [regexp.Regexp.Match].
//
// # Data flow
//
//	expr ── Compile ──▶ Pattern, shared by all users of the same expression
//	                      │ first Match
//	                      ▼
//	      syntax.Prog ── partition ──▶ classes of runes
//	           │                            │
//	           └──────── determinize ───────┴──▶ automaton (minimized tables)
//	                          │ too large
//	                          ▼
//	                    regexp.Regexp
//
// # How it matches
//
// Whether a text matches is one bit, so neither priorities nor captures nor
// laziness matter, and a deterministic automaton can tell: one step for each
// rune, and an early end as soon as the result cannot change. Runes fall into
// a few classes that the expression cannot tell apart; ASCII goes through a
// table, the rest is decoded and looked up, and a byte that is not UTF-8 is
// U+FFFD, as in package regexp. All of its syntax is covered, assertions
// included: what an assertion has to know of the text before it is part of the
// state, what it has to know of the text after it is decided by the next step.
//
// Matching takes time linear in the text and does not allocate.
//
// # Limits
//
// An expression is as large as regexp/syntax accepts, which bounds nesting at
// 1,000, repetition at 1,000, and the program at about 3.3 million
// instructions; Compile's errors are those of [regexp.Compile]. Automata are
// smaller: building one takes a bounded number of steps, and it has a bounded
// number of entries (see the constants in build.go). Expressions that do not
// fit, few and mostly hostile, are left to package regexp. That takes time
// linear in text times expression, as it does upstream, and allocates when
// regexp's pools of scratch memory are empty.
//
// # Memory
//
// Compile only checks the expression. Tables are built when the first text is
// matched, because most patterns of most schemas never see one; they usually
// take less than a kilobyte. The process shares patterns as long as they are in
// use: the registry holds weak references to them.
package pattern
