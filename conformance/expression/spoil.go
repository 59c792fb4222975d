package expression

import "github.com/google/cel-go/common/types"

// spoiled makes something that is wrong in one place: most of it does not compile, and some of it fails later.
func (g *generator) spoiled(t *types.Type, depth int) string {
	g.fine = true // one mistake is enough
	switch g.IntN(11) {
	case 0:
		return "null"
	case 1:
		return "self.nowhere"
	case 2:
		return "unknown"
	case 3:
		return "missing(" + g.leaf(g.plain()) + ")"
	case 4:
		return g.leaf(g.plain()) + ".missing()"
	case 5:
		return "dyn(" + g.expr(g.free(), depth-1) + ")"
	case 6:
		return g.of("timestamp('2024-13-01T00:00:00Z')", "duration('1x')", "duration('9999999999h')", "timestamp('')", "'a'.matches('(')", "9223372036854775808", "-9223372036854775809", "1.e", "'\\q'", "b'\\u0041'", "[1, 'a']", "{1: 2, 'a': 3}", "{[1]: 2}", "{1.5: 2}")
	case 7:
		return g.of("self.`a-b`", "self['a']", "optional.none().value()", "type(self)", "self.?nowhere", "google.protobuf.Int32Value{value: 1}", "has(self)", "self{}", "authorizer.path('/x').check('get').allowed()", "oldSelf", "cel.bind(a, 1, a)", "math.greatest(1, 2)", "base64.encode(b'a')", "'a'.reverse()", "self.?a.orValue(1)", "[1].last()")
	case 8:
		return "[" + g.leaf(t) + "].map(x, x, x, x)"
	}
	return g.expr(g.plain(), depth-1)
}
