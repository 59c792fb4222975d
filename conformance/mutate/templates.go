package mutate

// A ruleTemplate is one entry of x-kubernetes-validations with placeholders: S is the value the rule is about ("self"
// or "self.field"), O the same of the old object.
type ruleTemplate struct {
	rule    string
	message string // messageExpression if it begins with =
}

// ruleTemplates are rules that type-check on a value of the type they are listed under. Many of them hold for some
// values only, some fail, some are expensive.
var ruleTemplates = map[string][]ruleTemplate{
	"string": {
		{"size(S) < 12", ""}, {"S.size() > 2", "too short"}, {"S.startsWith('a')", ""}, {"S.endsWith('x') || S.contains('-')", "=\"bad end: \" + S"},
		{"S.matches('^[a-z-]+$')", "must be lower case"}, {"S.lowerAscii() == S", ""}, {"S.upperAscii() != S", ""}, {"S != ''", "=\"\""},
		{"S.split('-').size() < 4", "=\"parts: \" + string(S.split('-').size())"}, {"S.split('-').all(p, p.size() > 2)", ""}, {"S.indexOf('-') != 0", ""},
		{"S.replace('-', '').size() > 3", ""}, {"S.substring(0, 2) != 'ap'", ""}, {"S.charAt(0) != 'p'", ""}, {"S.trim() == S", "="}, {"int(S) > 3", "not a number"},
		{"S == O", "immutable"}, {"O.size() <= S.size()", "=\"was \" + O"}, {"S in ['apple', 'pear', 'a']", ""}, {"S.find('[0-9]+') == ''", ""}, {"S.findAll('[aeiou]').size() < 8", ""},
		{"!isURL(S) || url(S).getScheme() == 'https'", ""}, {"!isQuantity(S) || quantity(S).isGreaterThan(quantity('1'))", ""}, {"!isIP(S) || ip(S).family() == 4", ""},
		{"!isCIDR(S) || cidr(S).prefixLength() > 8", ""}, {"!format.dns1123Label().validate(S).hasValue()", "=\"line\\nbreak\""}, {"S.lastIndexOf('a') > 1", ""}, {"!isSemver(S) || semver(S).major() > 0", ""},
		{"S.size() < 5 ? true : S.contains('e')", ""}, {"[S].exists(x, x == 'b')", ""}, {"S <= 'q'", ""}, {"S.matches(S)", ""}, {"duration(S) > duration('1s')", ""}, {"S.format([1]) != ''", ""},
		{"optional.of(S).orValue('x') != 'x'", ""}, {"strings.quote(S).size() > 6", ""}, {"[1,2,3].exists(i, S.contains(string(i)))", ""}, {"bytes(S).size() == S.size()", ""},
	},
	"integer": {
		{"S > 0", ""}, {"S < 100", "=\"too big: \" + string(S)"}, {"S % 2 == 0", "must be even"}, {"10 / S > 0", ""}, {"S * 4611686018427387904 > 0", ""}, {"S >= O", "must not shrink"}, {"S == O || S == O + 1", "=string(O) + \" to \" + string(S)"},
		{"S in [1, 2, 3]", ""}, {"S != 0 && 100 / S < 50", ""}, {"double(S) < 3.5", ""}, {"S < 2.5", ""}, {"string(S).size() < 4", ""}, {"-S < 0", ""}, {"uint(S) >= 0u", ""}, {"S >= 1.0 || S < 0.5", ""}, {"timestamp(S) > timestamp('1970-01-02T00:00:00Z')", ""},
		{"[S, 3].max() == S", ""},
	},
	"number": {
		{"S > 0.5", ""}, {"S < 100.0", "=\"number \" + string(S)"}, {"int(S) % 2 == 0", ""}, {"S == O", "immutable number"}, {"S >= 1", ""}, {"1.0 / S > 0.1", ""}, {"S in [0.5, 1.0]", ""}, {"string(S) != '0.5'", ""},
	},
	"boolean": {{"S", "must be true"}, {"!S", ""}, {"S == O", ""}, {"S ? 1 < 2 : 2 < 1", "=S ? \"yes\" : \"no\""}},
	"array": {
		{"S.size() < 3", "=\"too many: \" + string(S.size())"}, {"size(S) != 0", ""}, {"S == O", "immutable list"}, {"S.all(x, O.exists(y, x == y))", ""}, {"S.all(x, S.exists_one(y, x == y))", "items must be unique"}, {"O.all(x, x in S)", "nothing may be removed"},
		{"S[0] == S[size(S) - 1]", ""}, {"S[1] == S[0]", ""}, {"S + S != S", ""}, {"S.map(x, x).size() > 1", ""}, {"S.filter(x, x == S[0]).size() == 1", ""}, {"S == [] || S != []", ""}, {"S.all(x, S.all(y, S.all(z, x == y || y == z || x == z)))", "few kinds"}, {"(S + O).size() < 7", ""},
		{"S.exists(i, v, i > 1)", ""}, {"S.transformList(i, v, i).sum() < 4", ""}, {"sets.contains(S, [S[0]])", ""}, {"S.slice(0, 1).size() == 1", ""}, {"S.distinct().size() == S.size()", ""},
	},
	"strings": {
		{"S.all(s, s.size() < 9)", ""}, {"S.exists(s, s == 'a')", ""}, {"S.isSorted()", ""}, {"S.join(',').size() < 30", "=S.join(',')"}, {"S.map(s, s.size()).sum() < 20", ""}, {"S.min() != S.max()", ""}, {"S.indexOf('a') < 1", ""}, {"S.all(s, s.startsWith('p') || s in O)", ""},
	},
	"object": {
		{"S == O", "immutable object"}, {"S != null", ""}, {"true", ""}, {"false", "never"}, {"type(S) == type(O)", ""}, {"false", "=\"old \" + (S == O ? \"same\" : \"other\")"}, {"S == S", ""},
	},
	"map": {
		{"S.size() < 3", "=\"entries: \" + string(size(S))"}, {"S.all(k, k.size() < 9)", ""}, {"O.all(k, k in S)", "no key may go"}, {"'a' in S || S.size() == 0", ""}, {"S.exists(k, S[k] == S[k])", ""}, {"S['apple'] == S['apple']", ""}, {"S == O", "immutable map"},
		{"S.all(k, v, k != 'a')", ""}, {"S.map(k, k).size() == S.size()", ""}, {"S.filter(k, k.contains('p')).size() < 2", ""}, {"S[?'a'].hasValue()", ""}, {"S.transformMap(k, v, v) == S", ""},
	},
	"int-or-string": {
		{"type(S) == int ? S > 0 : S.size() > 1", "int or string"}, {"S == 1 || S == 'a'", ""}, {"S > 1", ""}, {"string(S) != '5'", "=string(S)"}, {"S == O", ""}, {"S.size() > 0", ""}, {"type(S) == string && S.endsWith('%') || type(S) == int", ""},
	},
	"bytes":    {{"S.size() > 3", ""}, {"S == O", ""}, {"string(S) != 'ABC'", ""}, {"S != b'QUJD'", "=string(S)"}},
	"datetime": {{"S > timestamp('2024-01-01T00:00:00Z')", ""}, {"S.getFullYear() == 2024", "=string(S)"}, {"S.getHours('Europe/Berlin') > 3", ""}, {"S >= O", ""}, {"S - timestamp('2024-01-01T00:00:00Z') < duration('9000h')", ""}, {"S.getDayOfWeek() != 0", ""}},
	"duration": {{"S > duration('1m')", ""}, {"S.getSeconds() < 4000", "=string(S)"}, {"S + duration('1h') > duration('2h')", ""}, {"S == O", ""}},
	"resource": {
		{"self.metadata.name.size() < 12", ""}, {"self.kind == 'Tree' || self.kind.size() > 4", ""}, {"self.apiVersion.contains('v1')", "=self.metadata.name"}, {"!has(self.metadata.generateName)", ""}, {"self.metadata.name.startsWith('a') || self.metadata.name == oldSelf.metadata.name", ""},
	},
}

// expensive are rules whose cost exceeds one budget or another where lists and strings are long or unbounded.
var expensive = []string{
	"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a + b + c + d + e > 0)))))",
	"[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, a * b * c))).size() > 0",
	"[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, a)))))).size() > 0",
}

// broken are rules that do not compile, or not to what is wanted.
var broken = []string{"self ==", "self.nowhere == 1", "1", "self.all(", "oldSelf.x.y", "'a' + 1 == 2", "undeclared", "self.matches('[')", "duration('x') > duration('1s')", "[1, 'a'].size() > 0", "ip('x').family() == 4"}
