package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/conformance/compare"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// The fuzzer is guided by the coverage of both sides: it instruments every dependency.

// report shrinks a difference, if there is one.
func report(t *testing.T, d *compare.Difference) {
	t.Helper()
	if d != nil {
		t.Error(compare.Shrink(d, 20*time.Second))
	}
}

// compiled compiles a seed schema for both sides and for the generator.
func compiled(f *testing.F, s corpus.Schema) (*compare.Pair, *generate.Plan) {
	pair, d := compare.Compile(s.JSON)
	if d != nil || pair == nil {
		f.Fatalf("%s does not compile: %v", s.Name, d)
	}
	plan, err := generate.Compile(s.JSON)
	if err != nil {
		f.Fatal(err)
	}
	return pair, plan
}

// FuzzDifferential hands the fuzzer's bytes to both sides, with one of the seed schemas.
func FuzzDifferential(f *testing.F) {
	var pairs []*compare.Pair
	for i, s := range seeds(f) {
		pair, plan := compiled(f, s)
		pairs = append(pairs, pair)
		for _, mode := range []generate.Mode{generate.Valid, generate.Near, generate.Hostile, generate.Hostile} {
			f.Add(uint8(i), mode == generate.Near, plan.Append(nil, uint64(i)*7+uint64(mode), generate.Options{Mode: mode, Size: 300}))
		}
	}
	f.Fuzz(func(t *testing.T, schema uint8, storage bool, object []byte) {
		source := oracle.Request
		if storage {
			source = oracle.Storage
		}
		pair := pairs[int(schema)%len(pairs)]
		d, out := pair.Normalize(object, source)
		if d == nil {
			d = pair.Routes(object, source, out)
		}
		report(t, d)
	})
}

// FuzzValidate hands the fuzzer's bytes to both sides as an object and what it was before, with one of the seed schemas.
// It ignores bytes that are no objects.
func FuzzValidate(f *testing.F) {
	var pairs []*compare.Pair
	for i, s := range seeds(f) {
		pair, plan := compiled(f, s)
		pairs = append(pairs, pair)
		for seed := range uint64(4) {
			old := plan.Append(nil, uint64(i)*7+seed, generate.Options{Mode: generate.Breach, Size: 300, Compact: true})
			f.Add(uint8(i), uint8(seed), generate.Edit(old, old, seed), old)
			f.Add(uint8(i), uint8(seed), old, []byte(nil))
		}
	}
	f.Fuzz(func(t *testing.T, schema, how uint8, object, old []byte) {
		obj, err := oracle.Decode(object)
		if err != nil {
			return
		}
		o := oracle.ValidateOptions{Ratchet: how&1 == 0, Scope: oracle.Scope(how >> 1 % 3)}
		if before, err := oracle.Decode(old); err == nil {
			o.Old = oracle.Marshal(before)
		}
		d, _, _ := pairs[int(schema)%len(pairs)].Validate(oracle.Marshal(obj), o)
		report(t, d)
	})
}

// limit bounds what the fuzzer makes: on both sides the cost of a schema is more than linear in its size.
const limit = 4 << 10

// FuzzSchema hands the fuzzer's bytes to both sides as a schema, an object of it and what it was before.
func FuzzSchema(f *testing.F) {
	for i, s := range seeds(f) {
		_, plan := compiled(f, s)
		object := plan.Append(nil, uint64(i), generate.Options{Mode: generate.Breach, Size: 200, Compact: true})
		f.Add(s.JSON, object, generate.Edit(object, object, uint64(i)))
	}
	f.Fuzz(func(t *testing.T, schema, object, old []byte) {
		if len(schema)+len(object)+len(old) > limit {
			return
		}
		schema = compare.WithoutTwins(schema) // the row duplicate-schema-keys
		d, theirs := compare.Schema(schema, false)
		report(t, d)
		if d != nil || !theirs.Accepted() {
			return
		}
		pair, d := compare.Compile(schema)
		report(t, d)
		if pair == nil {
			return
		}
		for _, source := range []oracle.Source{oracle.Request, oracle.Storage} {
			d, _ := pair.Normalize(object, source)
			report(t, d)
		}
		obj, err := oracle.Decode(object)
		if err != nil {
			return
		}
		o := oracle.ValidateOptions{}
		d, _, _ = pair.Validate(oracle.Marshal(obj), o)
		report(t, d)
		if before, err := oracle.Decode(old); err == nil {
			o.Old, o.Ratchet = oracle.Marshal(before), true
			d, _, _ = pair.Validate(oracle.Marshal(obj), o)
			report(t, d)
		}
	})
}

// ruled is a schema with a rule about fields of many types.
const ruled = `{"type":"object","properties":{"self":{"type":"object","x-kubernetes-validations":[{"rule":%s,"messageExpression":%s}],"properties":{` +
	`"i":{"type":"integer"},"n":{"type":"number"},"s":{"type":"string","maxLength":20},"b":{"type":"boolean"},"d":{"type":"string","format":"duration"},` +
	`"t":{"type":"string","format":"date-time"},"y":{"type":"string","format":"byte"},"x":{"x-kubernetes-int-or-string":true},` +
	`"u":{"x-kubernetes-preserve-unknown-fields":true,"type":"object"},"e":{"type":"object","x-kubernetes-embedded-resource":true},` +
	`"l":{"type":"array","maxItems":5,"items":{"type":"integer"}},"a":{"type":"array","x-kubernetes-list-type":"set","maxItems":5,"items":{"type":"string","maxLength":9}},` +
	`"k":{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":9},"v":{"type":"integer","nullable":true}}}},` +
	`"m":{"type":"object","maxProperties":5,"additionalProperties":{"type":"integer"}}}}}}`

// FuzzRule hands the fuzzer's text to both sides as a rule and as the expression of its message.
func FuzzRule(f *testing.F) {
	const object = `{"self":{"i":-3,"n":1.5,"s":"abc","b":true,"d":"1h","t":"2020-01-01T00:00:00Z","y":"YWJj","x":"5","u":{"z":[1]},"l":[3,1,2],"a":["x","y"],"k":[{"k":"p","v":null},{"k":"q","v":2}],"m":{"j":1}}}`
	for _, rule := range rules() {
		f.Add(rule, "'m'", []byte(object), []byte(`{"self":{"i":1,"l":[1],"a":["y"],"k":[{"k":"q","v":3}]}}`))
		f.Add("self.i > 0", rule, []byte(object), []byte(object))
	}
	f.Fuzz(func(t *testing.T, rule, message string, object, old []byte) {
		if len(rule)+len(message)+len(object)+len(old) > limit || strings.Count(rule+message, "(") > 40 {
			return
		}
		schema := fmt.Appendf(nil, ruled, tree.Quote(rule), tree.Quote(message))
		d, theirs := compare.Schema(schema, false)
		report(t, d)
		if d != nil || !theirs.Accepted() {
			return
		}
		d, _ = compare.Costs(schema)
		report(t, d)
		pair, d := compare.Compile(schema)
		report(t, d)
		obj, err := oracle.Decode(object)
		if pair == nil || err != nil {
			return
		}
		o := oracle.ValidateOptions{}
		d, _, _ = pair.Validate(oracle.Marshal(obj), o)
		report(t, d)
		if before, err := oracle.Decode(old); err == nil {
			o.Old = oracle.Marshal(before)
			d, _, _ = pair.Validate(oracle.Marshal(obj), o)
			report(t, d)
		}
	})
}

// rules are some of every library.
func rules() []string {
	return []string{
		"self.l.all(x, x > 0) && self.l.exists_one(x, x == 2)", "self.k.exists(x, has(x.v) && x.v == 2)", "self.m.all(k, self.m[k] < 3)", "self.a + ['x', 'x'] == self.a",
		"self.s.matches('^a.*') ? self.s.size() > 2 : self.s == ''", "self.l.isSorted() || self.l.sum() == 6 && self.l.min() == 1 && self.l.indexOf(2) == 2",
		"self.s.find('[a-z]+') == 'abc' && self.s.findAll('.', 2) == ['a', 'b']", "isURL(self.s) || url('https://a.b/c?d=e').getHost() == 'a.b'",
		"quantity('1Ki').isGreaterThan(quantity('1k')) && isQuantity(self.s)", "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
		"sets.contains(self.a, ['x']) && sets.intersects(self.l, [1])", "duration(self.d) > duration('1m') && self.t > timestamp('2019-01-01T00:00:00Z')",
		"oldSelf.i < self.i || self.k.all(x, oldSelf.k.exists(y, y.k == x.k))", "self.?u.z.orValue([]).size() > 0 && optional.of(1).hasValue()",
		"type(self.x) == string ? int(self.x) == 5 : self.x == 5", "string(self.y) == 'abc' && self.y.size() == 3", "self.l.map(x, x * 2).filter(x, x > 2).size() == 2",
		"self.s.split('').map(c, c.upperAscii()).join('-') == 'A-B-C'", "format.dns1123Label().validate(self.s) == optional.none()", "-self.i * 9223372036854775807 > 0", "1.0 / 0.0 > self.n",
		"self.l.transformMap(i, v, i > 0, v + 1).size() == 2", "semver('1.2.3').isLessThan(semver('2.0.0'))", "math.greatest(self.l) == 3", "b'abc' == self.y || self.y == bytes('abc')",
	}
}

// FuzzCRD hands the fuzzer's bytes to both sides as a CRD, created and changed.
func FuzzCRD(f *testing.F) {
	for _, s := range seeds(f) {
		doc := whole(string(s.JSON), "")
		f.Add(doc, []byte(strings.Replace(string(doc), `"served":true`, `"served":true,"subresources":{"status":{}}`, 1)))
	}
	f.Fuzz(func(t *testing.T, doc, old []byte) {
		if len(doc)+len(old) > 2*limit || !typed(doc) || !typed(old) {
			return
		}
		doc, old = compare.WithoutTwins(doc), compare.WithoutTwins(old) // the row duplicate-definition-keys
		for _, verbatim := range []bool{false, true} {
			d, _ := compare.CRD(doc, oracle.CRDOptions{Verbatim: verbatim})
			report(t, d)
			d, theirs := compare.CRD(old, oracle.CRDOptions{Verbatim: verbatim})
			report(t, d)
			if theirs.Undecodable == nil && theirs.Panic == nil {
				d, _ = compare.CRD(doc, oracle.CRDOptions{Old: old, Verbatim: verbatim})
				report(t, d)
			}
		}
	})
}

// typed reports whether a document says that it is a CRD. Handlers of requests decide about
// others, and fill in what is missing, before either side reads the document: the reference
// is called behind them and takes whatever it gets for a CRD.
func typed(doc []byte) bool {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(doc, &meta) != nil || meta.Kind != "CustomResourceDefinition" {
		return false
	}
	return meta.APIVersion == "apiextensions.k8s.io/v1" || meta.APIVersion == "apiextensions.k8s.io/v1beta1"
}
