package cel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/bridge"
)

// strs returns n strings of a length, as JSON.
func strs(n, length int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%q", fmt.Sprintf("%0*d", length, i))
	}
	return strings.Join(list, ",")
}

// costly is an expression that costs about 5 for each byte of text in l.
var costly = "self.l.all(x, x.matches('^([0-9]|" + strings.Repeat("a", 180) + ")*$') || true)"

const lists = `"l":{"type":"array","items":{"type":"string"}}`

func TestOneRuleBeyondItsLimit(t *testing.T) {
	schema := specWith(lists, `{"rule":"`+costly+`","message":"heavy"},{"rule":"false","message":"not run"}`)
	v := validate(t, schema, `{"spec":{"l":[`+strs(30, 10000)+`]}}`, "")
	want := []string{`spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: heavy`}
	if got := rendered(v.Errors); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// What counts is the larger of the object and the old one.
func TestOldValuesBeyondTheLimit(t *testing.T) {
	schema := specWith(lists, `{"rule":"`+strings.Replace(costly, "self", "oldSelf", 1)+`","message":"heavy"}`)
	v := validate(t, schema, `{"spec":{"l":["a"]}}`, `{"spec":{"l":[`+strs(30, 10000)+`]}}`)
	want := []string{`spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: heavy`}
	if got := rendered(v.Errors); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestAllRulesBeyondTheBudget(t *testing.T) {
	var rules []string
	for i := range 20 {
		rules = append(rules, fmt.Sprintf(`{"rule":"%s || %d == 0","message":"heavy"}`, costly, i+1))
	}
	schema := specWith(lists, strings.Join(rules, ","))
	v := validate(t, schema, `{"spec":{"l":[`+strs(15, 10000)+`]}}`, "")
	want := []string{`spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run`}
	if got := rendered(v.Errors); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if v := validate(t, schema, `{"spec":{"l":[`+strs(9, 10000)+`]}}`, ""); !v.Valid() {
		t.Errorf("got %q", rendered(v.Errors))
	}
}

func TestMessagesBeyondTheirLimit(t *testing.T) {
	schema := specWith(lists, `{"rule":"false","message":"m","messageExpression":"`+costly+` ? 'a' : 'b'"},{"rule":"!true","message":"not run"}`)
	v := validate(t, schema, `{"spec":{"l":[`+strs(30, 10000)+`]}}`, "")
	want := []string{`spec: Invalid value: "object": no further validation rules will be run due to call cost exceeds limit for messageExpression: "` + costly + ` ? 'a' : 'b'"`}
	if got := rendered(v.Errors); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// expressions use every function that bounds are trusted for.
var expressions = []string{
	`self.s == self.t || self.s != self.t || self.s < self.t || self.s >= 'x'`, `self.s + self.t + 'x' == 'y'`, `self.by + self.by == self.by || self.by < b'x'`,
	`self.s.contains(self.t) || self.s.startsWith(self.t) || self.s.endsWith(self.t)`, `self.s.matches('^(a|b)+[0-9]{1,3}$') || self.s.matches(self.t)`,
	`self.s.find('[a-z]+') == '' || self.s.findAll('[0-9]').size() == 0 || self.s.findAll('').size() > 0`, `self.s.replace('a', 'bb').size() > 1 || self.s.replace('', self.t).matches('x')`,
	`self.s.split(',').size() > 0 || self.s.split('').all(x, x != '' || true)`, `self.s.lowerAscii() == self.s.upperAscii() || self.s.trim().substring(0) == '' || self.s.charAt(0) == 'a'`,
	`self.s.indexOf('a') > 0 || self.s.lastIndexOf(self.t) > 0 || self.s.substring(0, 0) == ''`, `self.set.join('') == self.s || self.set.join(self.t) == ''`,
	`'%s %d'.format([self.s, self.i]) == '' || strings.quote(self.s) == self.s`, `self.l.all(x, x in self.l && self.l.exists_one(y, y == x))`, `self.l.filter(x, x > 1).map(x, x + 1).size() > 0`,
	`self.l == self.l2 || self.l + self.l2 == self.l || self.set == self.set2 || dyn(self.ml) == self.ml2 || self.m == self.m2`, `self.m.all(k, self.m[k] > 0 && k.matches('^[a-z-]+$') && k + k != 'x')`,
	`self.m.exists(k, v, v > 1 && k.contains('y'))`, `self.l.isSorted() || self.l.sum() > 1 || self.l.min() < 0 || self.set.max() == 'a' || self.l.indexOf(1) > 2 || self.set.lastIndexOf('a') > 0`,
	`self.ios == 'x' || self.ios == 5 || (type(self.ios) == string && self.ios.matches('[0-9]+%'))`, `self.?no.orValue('') == '' && self.?emb.spec.q.orValue(1) == 1 && optional.of(self.s).hasValue()`,
	`has(self.no) ? self.no.matches('x') : (has(self.s) ? size(self.s) > 0 : false)`, `dyn(self.emb).spec.q == 5 && dyn(self.s) == self.s`, `self.emb == self.emb && dyn(self.pu) == self.pu2 && self.os == self.os`,
	`self.du > duration('1s') && self.dt.getFullYear() > 1 && self.d.getHours('+01:00') == 1 && timestamp(self.t) < self.d`, `isURL(self.s) || url(self.s).getHost() == '' || url('http://x/y?z').getQuery().size() > 0`,
	`isIP(self.s) || ip('1.2.3.4').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1') || isCIDR(self.t)`, `isQuantity(self.s) && quantity(self.s).isGreaterThan(quantity('1')) || quantity('1').add(2).asInteger() == 3`,
	`isSemver(self.s) || semver('1.2.3').major() == 1`, `!format.dns1123Label().validate(self.s).hasValue() || format.named('uuid').hasValue()`, `sets.contains(self.l, self.l2) || sets.intersects(self.set, self.set2) || sets.equivalent(self.l, [1])`,
	`string(self.i) == '1' || int(self.t) == 1 || double(self.i) > 1.0 || bool(self.t) || bytes(self.s) == self.by || string(self.by) == self.s`, `[self.s, self.t].exists(x, x.matches('a')) && {'a': self.s}.a == self.s`,
	`self.l.map(x, self.l.map(y, x * y)).exists(z, z == [1])`, `self.ln.all(x, dyn(x) == null || x.size() > 0)`, `self.os.all(o, !has(o.f) || dyn(o.f) == null)`, `self.ml.all(x, self.ml2.exists(y, y.k == x.k && y.v == x.v))`,
	`format.dns1123Label().validate('').hasValue() && format.uuid().validate('').hasValue()`, `'a,b,c'.split(',').all(x, 'x' != x)`, `'aaa'.findAll('').all(x, 'x' != x) && 'aaa'.split('').all(x, 'x' != x)`,
	`self.m.map(k, k).size() == self.m.size() && 'x' in self.m && self.m[?'q'].orValue(1) == 1`, `self.i % 2 == 1 ? self.i / 2 > 1 : -self.i * 3 - 1 < 0`,
}

// TestBoundsHold is what not counting rests on.
func TestBoundsHold(t *testing.T) {
	objects := []string{anObject}
	for _, r := range []*strings.Replacer{
		strings.NewReplacer(`"häß"`, `"`+strings.Repeat("a,", 60)+`"`, `"a\"b\u0041"`, `"`+strings.Repeat("1", 100)+`"`),
		strings.NewReplacer(`"häß"`, `"`+strings.Repeat("ä", 250)+`"`, `[3,1,2]`, "["+strings.Repeat("3,1,2,", 15)+"0]", `"x":1,"y-z":2`, `"`+strings.Repeat("k", 400)+`":1,"y-z":2`),
		strings.NewReplacer(`"häß"`, `""`, `[3,1,2]`, `[]`, `"x":1,"y-z":2`, ``, `"50%"`, `"`+strings.Repeat("5", 120)+`"`),
		strings.NewReplacer(`["b","a"]`, "["+strs(120, 1000)+"]", `"aGVsbG8="`, `"`+strings.Repeat("aGVs", 300)+`"`),
	} {
		objects = append(objects, r.Replace(anObject))
	}
	for _, rule := range expressions {
		s, set := compileSchema(t, specWith(everything, fmt.Sprintf(`{"rule":%q}`, rule)))
		spec := bridge.Plan(s).Props.At(bridge.Plan(s).Props.Lookup([]byte("spec"))).Node
		p := set.programs(spec, false).rules[0]
		if p.problem != "" {
			t.Errorf("%s: %s", rule, p.problem)
			continue
		}
		if p.test.bounds[0] == unbounded {
			t.Errorf("%s: has no bound", rule)
		}
		sc := newScope(set.lang, spec, false, newSizes(set.views))
		e, bad := sc.parseRule(p.rule)
		if bad != nil {
			t.Fatal(bad.detail)
		}
		penalty, _ := e.penalty()
		plain, err := e.plainCountingProgram()
		if err != nil {
			t.Fatal(err)
		}
		for i, object := range objects {
			d := document(t, object)
			r := reader{}
			r.use(d, set.views)
			v, _ := d.Get(0, "spec")
			_, details, _ := plain.Eval(&variables{self: r.root(v, spec, false)})
			cost := details.ActualCost()
			for _, l := range []level{sizeOf(d), levels[sizeOf(d).class()]} {
				if bound := e.boundFor(l, penalty); cost == nil || *cost > uint64(bound) {
					t.Errorf("%s: object %d costs %d, bound is %d", rule, i, *cost, bound)
				}
			}
		}
	}
}

// Functions whose price may be too low have no bound: what they cost is counted.
func TestUnboundedExpressions(t *testing.T) {
	for _, rule := range []string{
		`self.m.transformMap(k, v, v).size() > 0`, `self.l.distinct().size() > 0`, `self.l.sortBy(x, -x).size() > 0`, `lists.range(5).size() > 0`, `self.ml.map(x, [x]).flatten().size() > 0`, `self.os.indexOf(self.os[0]) == 0`,
	} {
		s, set := compileSchema(t, specWith(everything, fmt.Sprintf(`{"rule":%q}`, rule)))
		p := set.programs(bridge.Plan(s).Property("spec"), false).rules[0]
		if p.problem != "" || p.test.bounds[0] != unbounded {
			t.Errorf("%s: %v %s", rule, p.test.bounds, p.problem)
		}
	}
}

// A cost beyond what a bound can hold is no bound: not the part of it that can be held.
func TestCostsBeyondAllBounds(t *testing.T) {
	for _, rule := range []string{
		`self.l.all(x, self.l.all(y, self.l.all(z, x + y != z)))`, `self.l.all(x, self.l.all(y, self.l.all(z, self.l.all(v, x + y != z + v))))`, `self.l.all(x, self.set.all(y, y + self.s != self.t))`,
	} {
		s, set := compileSchema(t, specWith(everything, fmt.Sprintf(`{"rule":%q}`, rule)))
		p := set.programs(bridge.Plan(s).Property("spec"), false).rules[0]
		if p.problem != "" || p.test.bounds[0] == unbounded || p.test.bounds[len(levels)-1] != unbounded || !slices.IsSorted(p.test.bounds[:]) {
			t.Errorf("%s: %v %s", rule, p.test.bounds, p.problem)
		}
	}
}

// What evaluation costs, with the prices of the API server's functions.
func TestCountedCosts(t *testing.T) {
	for _, c := range []struct {
		rule string
		cost uint64
	}{
		{`self.i == 7`, 3}, {`self.l.sum() == 6`, 6}, {`self.l.isSorted()`, 5}, {`self.l.all(x, x > 0)`, 18}, {`self.s.find('h') == 'h'`, 4}, {`isURL(self.s)`, 3}, {`self.set.join(',') == ''`, 3}, {`self.l.indexOf(1) == 1`, 6},
	} {
		s, set := compileSchema(t, specWith(everything, fmt.Sprintf(`{"rule":%q}`, c.rule)))
		spec := bridge.Plan(s).Property("spec")
		e, bad := newScope(set.lang, spec, false, newSizes(set.views)).parseRule(&spec.Rare.Rules[0])
		if bad != nil {
			t.Fatal(bad.detail)
		}
		p, err := e.countingProgram()
		if err != nil {
			t.Fatal(err)
		}
		d := document(t, anObject)
		var r reader
		r.use(d, set.views)
		v, _ := d.Get(0, "spec")
		if _, details, err := p.Eval(&variables{self: r.root(v, spec, false)}); err != nil || *details.ActualCost() != c.cost {
			t.Errorf("%s: %d, not %d; %v", c.rule, *details.ActualCost(), c.cost, err)
		}
	}
}

// TestCountingChangesNothing compares the two ways of evaluation.
func TestCountingChangesNothing(t *testing.T) {
	for _, rule := range expressions {
		_, set := compileSchema(t, specWith(everything, fmt.Sprintf(`{"rule":%q},{"rule":"!(%s)","messageExpression":"string(%s)"}`, rule, jsonText(rule), jsonText(rule))))
		errs, warnings, ok := attempt(t, set, anObject, anObject, false)
		errs2, warnings2, _ := attempt(t, set, anObject, anObject, true)
		if !ok || !slices.Equal(errs, errs2) || !slices.Equal(warnings, warnings2) {
			t.Errorf("%s:\n%q\n%q\n%q\n%q", rule, errs, errs2, warnings, warnings2)
		}
	}
}

// TestCountingIsThatOfCEL compares the costs that CEL counts by itself with
// those counted in linear time.
func TestCountingIsThatOfCEL(t *testing.T) {
	for _, rule := range append(slices.Clone(expressions),
		`self.l.map(x, self.l.filter(y, y > x).map(z, [z, x])).all(q, q.size() >= 0) && self.l.exists_one(x, x == 3)`,
		`self.m.transformMap(k, v, v + 1).transformMapEntry(k, v, {k: v}).size() > 0 && self.l.transformList(i, x, i > 0, x).size() > 1`,
		`self.l.sortBy(x, -x)[0] == 3 && [self.l.distinct()].flatten().reverse().slice(0, 1) == [2] && lists.range(5).sum() == 10`,
		`self.?m.optMap(m, m.all(k, k != '')).orValue(false) && self.?l.optFlatMap(l, l[?1]).hasValue()`,
	) {
		s, set := compileSchema(t, specWith(everything, fmt.Sprintf(`{"rule":%q}`, rule)))
		spec := bridge.Plan(s).Property("spec")
		var costs [2]uint64
		var results [2]string
		for i := range costs {
			e, bad := newScope(set.lang, spec, false, newSizes(set.views)).parseRule(&spec.Rare.Rules[0])
			if bad != nil {
				t.Fatal(bad.detail)
			}
			p, err := e.plainCountingProgram()
			if i > 0 {
				p, err = e.countingProgram()
			}
			if err != nil {
				t.Fatal(err)
			}
			d := document(t, anObject)
			var r reader
			r.use(d, set.views)
			v, _ := d.Get(0, "spec")
			out, details, err := p.Eval(&variables{self: r.root(v, spec, false)})
			costs[i], results[i] = *details.ActualCost(), fmt.Sprint(out, err)
		}
		if costs[0] != costs[1] || results[0] != results[1] {
			t.Errorf("%s: costs %d, want %d; %s, want %s", rule, costs[1], costs[0], results[1], results[0])
		}
	}
}

// jsonText escapes a text to be put into a JSON string.
func jsonText(s string) string {
	q := fmt.Sprintf("%q", s)
	return q[1 : len(q)-1]
}
