package modes

import (
	"math/rand/v2"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// Versions are the compatibility versions to compare: from before rules had oldSelf to one after the newest library.
func Versions() []string {
	return []string{
		"1.23", "1.24", "1.26", "1.27", "1.28", "1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37", "1.38",
	}
}

// versioned are rules that some versions know and others do not, with some that all know. Their self is an object with the
// fields of versionedSchema.
var versioned = []string{
	`self == oldSelf`, `self.s == oldSelf.s`, `self.n > 1`, `self.s.size() > 1`, `self.l.isSorted()`, `self.l.sum() > 1`, `self.s.find('a') == 'a'`, `isURL(self.s)`,
	`1 < 1.5`, `self.n < 1.5`, `self.?s.orValue('') == ''`, `optional.of(self.s).hasValue()`, `[?self.?s].size() == 1`, `quantity(self.s).isInteger()`, `isQuantity(self.s)`,
	`sets.contains(self.l, [1])`, `self.s.split(',').join('') == ''`, `'%s'.format([self.s]) == ''`, `strings.quote(self.s) == ''`, `self.s.reverse() == ''`, `self.s.charAt(0) == 'a'`, `self.s.lowerAscii() == ''`,
	`duration('x') > duration('1s')`, `timestamp('x') > timestamp('y')`, `self.s.matches('(')`, `[1, 'a'].size() == 2`,
	`isIP(self.s)`, `ip(self.s).family() == 4`, `isCIDR(self.s)`, `cidr(self.s).containsIP('10.0.0.1')`,
	`format.dns1123Label().validate(self.s).hasValue()`, `format.named('uri').hasValue()`, `self.namespace == 'a'`, `self.__namespace__ == 'a'`, `self['in'] == 'a'`, `self.__in__ == 'a'`,
	`self.l.all(i, v, i < v)`, `self.m.all(k, v, k != v)`, `self.l.transformList(i, v, v + i).size() > 0`, `self.m.transformMap(k, v, v + k).size() > 0`, `self.l.exists(i, v, v == i)`,
	`isSemver(self.s)`, `semver(self.s).major() == 1`, `semver('v1.0', true).major() == 1`, `isSemver(self.s, true)`,
	`lists.range(3).size() == 3`, `self.l.distinct().size() == 1`, `self.l.sort().size() == 1`, `self.l.slice(0, 1).size() == 1`, `self.l.reverse().size() == 1`, `[self.l].flatten().size() == 1`, `self.l.first().hasValue()`, `self.l.last().hasValue()`,
	`self.l.sortBy(x, -x).size() == 1`, `self.l.indexOf(1) == 0`, `self.l.lastIndexOf(1) == 0`, `self.l.min() == 1`, `self.l.max() == 1`, `[[1]].indexOf([1]) == 0`,
	`authorizer.group('').resource('pods').check('get').allowed()`, `self.none`, `dyn(self.s) == 1`, `type(self.n) == int`, `self.d == duration('1s')`, `self.t.getFullYear() > 2000`, `self.b == b'a'`,
	`math.greatest(1, 2) == 2`, `base64.encode(b'a') == ''`, `cel.bind(x, self.n, x > 1)`, `self.s.replace('a', 'b') == ''`, `self.s.trim() == ''`, `jsonpatch.escapeKey('a') == ''`,
}

const versionedSchema = `{"type":"object","properties":{"spec":{"type":"object","required":["s","n","l","m","namespace","in","d","t","b"],"properties":{
"s":{"type":"string","maxLength":20},"n":{"type":"integer"},"l":{"type":"array","maxItems":5,"items":{"type":"integer"}},"m":{"type":"object","maxProperties":5,"additionalProperties":{"type":"string","maxLength":9}},
"namespace":{"type":"string","maxLength":9},"in":{"type":"string","maxLength":9},"d":{"type":"string","format":"duration"},"t":{"type":"string","format":"date-time"},"b":{"type":"string","format":"byte","maxLength":9},
"f":{"type":"string"}},"x-kubernetes-validations":[]}}}`

var formats = []string{"date", "unheard-of", "ipv4", "k8s-short-name", "k8s-long-name", "uuid", "int32", "dns1123Label", "semver"}

// Versioned makes a CRD with rules and formats that depend on the compatibility version.
func Versioned(seed uint64) (doc []byte, rules []string) {
	r := rand.New(rand.NewPCG(seed, 0x76657273))
	s := tree.Must(versionedSchema)
	spec := s.Get("properties").Get("spec")
	list := spec.Get("x-kubernetes-validations")
	for range 1 + r.IntN(3) {
		text := versioned[r.IntN(len(versioned))]
		rule := tree.Obj()
		if r.IntN(5) == 0 {
			rule.Set("rule", tree.Str("true"))
			rule.Set("messageExpression", tree.Str("string("+text+")"))
		} else {
			rule.Set("rule", tree.Str(text))
		}
		list.Kids = append(list.Kids, rule)
		rules = append(rules, text)
	}
	spec.Get("properties").Get("f").Set("format", tree.Str(formats[r.IntN(len(formats))]))
	root := tree.Must(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example","resourceVersion":"7"},"spec":{"group":"orchard.example","scope":"Namespaced",` +
		`"names":{"plural":"trees","kind":"Tree"},"versions":[{"name":"v1","served":true,"storage":true}]},"status":{"storedVersions":["v1"]}}`)
	v := root.Get("spec").Get("versions").Kids[0]
	v.Set("schema", tree.Obj())
	v.Get("schema").Set("openAPIV3Schema", s)
	return root.Bytes(), rules
}
