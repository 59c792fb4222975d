// Package expression makes schemas with random CEL rules, and objects of them. Everything follows from a seed.
//
// The functions and operators come from the declarations of the reference's own environment, so that a library that a
// new release adds is generated without a change here. What a case can contain:
//
//	case       = schema with 1–8 rules, objects, changed objects
//	schema     = root object; properties of every type and format, escaped names, int-or-string, nullable, embedded
//	             resources, x-kubernetes-preserve-unknown-fields, lists (atomic, set, map), maps; with bounds or without
//	rule       = bool , [ optionalOldSelf ] , [ message ] , [ messageExpression ] , [ fieldPath ] , [ reason ]
//	             at the root, properties, items of every list type, values of maps; about self, or self and oldSelf
//	expr(T)    = path | literal(T) | call(T) | macro(T) | algebra | partial | spoiled
//	path       = ( "self" | "oldSelf" | variable ) , { field | index | "?." field }
//	call(T)    = an overload whose result is T, with an expr for each argument; operators, the conditional and
//	             conversions are overloads too
//	macro(T)   = has, all, exists, exists_one, existsOne, map, filter, transformList, transformMap, transformMapEntry,
//	             sortBy, optMap, optFlatMap; with one or two variables, with and without a filter
//	literal(T) = numbers at the edges of their ranges, strings with escapes, lists and maps with duplicates and with
//	             optional elements, texts that URLs, quantities, addresses, versions and formats are made from
//	algebra    = sums of lists in scope with themselves, their parts, oldSelf and literals with duplicates; their size,
//	             items and equality
//	partial    = macros whose body is true, false or an error, depending on the item
//	paths      = fields with odd names (quotes, brackets, escapes, the empty name, names as long as a token), and fieldPath,
//	             jsonPath of selectable fields and paths of the scale subresource that lead to them, in both notations,
//	             with every escape, and with a character too many or too few
//	spoiled    = an expression of another type, an unknown field, function or variable, null, a bad literal
//
// Objects take their values from the same texts and numbers as literals, so that comparisons are true about as often as
// they are false.
package expression
