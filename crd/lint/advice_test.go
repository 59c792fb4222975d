package lint

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/cel"
)

// `make advice` sets it; tests of the package take a short form.
var advised = flag.Int("advice", 150, "number of fixes of CEL rules to apply to generated rules")

// rules generates CEL rules about the schema guarded.
type ruleMaker struct{ *rand.Rand }

func (r ruleMaker) of(list ...string) string { return list[r.IntN(len(list))] }

// space separates tokens.
func (r ruleMaker) space() string {
	if r.IntN(12) == 0 {
		return r.of("\n", "  ", " // && '(\n", "\t")
	}
	return " "
}

// rule writes an expression about self, and about x where element is set.
func (r ruleMaker) rule(depth int, element bool) string {
	if depth <= 0 {
		return r.atom(element)
	}
	sub := func() string { return r.rule(depth-1-r.IntN(2), element) }
	switch r.IntN(11) {
	case 0, 1, 2:
		return r.group(sub()) + r.space() + "&&" + r.space() + r.group(sub())
	case 3, 4, 5:
		return r.group(sub()) + r.space() + "||" + r.space() + r.group(sub())
	case 6:
		return "!(" + sub() + ")"
	case 7:
		return r.group(sub()) + " ? " + r.group(sub()) + r.space() + ": " + r.group(sub())
	case 8:
		if !element {
			return r.of("self.l", "self.l.filter(y, y.k != 'j')", "self.l.filter(y, has(y.v))") + r.of(".all", ".exists", ".exists_one") + "(x," + r.space() + r.rule(depth-1, true) + ")"
		}
	case 9:
		return "[" + sub() + ", " + sub() + "]" + r.of(".exists_one(z, z)", ".all(z, z)", ".filter(z, z).size() == 1", ".exists(z, !z)")
	}
	return r.atom(element)
}

// group writes brackets, which every mixture of operators may need.
func (r ruleMaker) group(s string) string { return "(" + s + ")" }

func (r ruleMaker) atom(element bool) string {
	if element && r.IntN(3) > 0 {
		return r.of("x.v > 1", "x.v == 2", "x.v != 2", "has(x.v)", "!has(x.v)", "x.k == 'k'", "x.v > self.a", "x.k == self.s", "self.l[0].v < x.v", "[x.v].exists(z, z > 1)")
	}
	return r.of("self.a > 1", "self.a <= self.b", "self.s == 'x'", "self.s != 'x'", "'x' == self.s", "self.s.startsWith('x')", "size(self.s) > 0", "self.s.size() == 1", "has(self.a)", "!has(self.b)", "has(self.o.opt)",
		"self.o.opt > 1", "self.o.in == 1", "self.o.opt == self.a", "'x' in self.m", "self.m['x'] == 'y'", "self.m.x == 'y'", "self.must == 'x'", "self.s in ['x', 'y']", "self.withDefault == 1",
		"(has(self.b) ? self.a : 0) > 1", "self.?a.orValue(1) == 1", "self.?o.opt.orValue(self.a) > 0", "self.l.size() > 1", "self.l[0].v > 1", "self.l.map(x, x.v).sum() > 2", "self.l.all(y, y.v == 1)",
		"self.a == oldSelf.a", "has(oldSelf.a)", "oldSelf.o.opt <= self.o.opt", "self.name.first == 'x'", "self.x__dash__y > 1", "self.a + self.b > 2", "[self.a, self.b].exists(z, z > 1)", "has(self.a) == has(self.b)", "self.t == r'\\d(' || self.s == \"it's\"")
}

// object generates an object of the schema guarded.
func (r ruleMaker) object() string {
	fields := map[string]any{"must": r.of("x", ""), "withDefault": r.IntN(2), "name": map[string]any{}}
	maybe := func(into map[string]any, name string, value any) {
		if r.IntN(2) == 0 {
			into[name] = value
		}
	}
	number := func() int { return r.IntN(4) }
	maybe(fields, "a", number())
	maybe(fields, "b", number())
	maybe(fields, "s", r.of("x", "y", "", "it's"))
	maybe(fields, "t", r.of("x", "y"))
	o := map[string]any{"in": number()}
	maybe(o, "opt", number())
	maybe(fields, "o", o)
	m := map[string]any{}
	maybe(m, "x", r.of("x", "y"))
	maybe(fields, "m", m)
	list := []any{}
	for range r.IntN(3) {
		item := map[string]any{"k": r.of("k", "j")}
		maybe(item, "v", number())
		list = append(list, item)
	}
	maybe(fields, "l", list)
	maybe(fields, "x-y", number())
	maybe(fields["name"].(map[string]any), "first", "x")
	raw, err := json.Marshal(map[string]any{"spec": fields})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// withRule is the schema guarded with a rule.
func withRule(rule string) string {
	raw, err := json.Marshal([]map[string]string{{"rule": rule, "message": "violated"}})
	if err != nil {
		panic(err)
	}
	return `{"type":"object","properties":{"spec":` + fmt.Sprintf(guarded, `,"x-kubernetes-validations":`+string(raw)) + `}}`
}

// evaluator returns a function that says what a rule makes of an object: "accepted",
// "violated", or the error.
func evaluator(t *testing.T, rule string) func(object, old string) string {
	t.Helper()
	s, err := espalier.Compile([]byte(withRule(rule)), espalier.CompileOptions{})
	if err != nil {
		t.Fatal(rule, err)
	}
	rules, err := cel.Compile(s)
	if err != nil {
		t.Fatal(rule, err)
	}
	return func(object, old string) string {
		_, v, err := s.Admit([]byte(object), espalier.AdmitOptions{Validate: espalier.ValidateOptions{Old: []byte(old), NoRatcheting: true, Rules: rules}})
		switch {
		case err != nil:
			t.Fatal(rule, object, err)
		case v.Valid():
			return "accepted"
		}
		return v.Errors[0].Detail
	}
}

// namedField is a field that the text of a fix names.
var namedField = regexp.MustCompile(`\b(self|oldSelf|x|y)((?:\.\w+|\["x"\]|\[0\])+)`)

// lacksNamed reports whether an object, or the old one, lacks a field after "without" in
// the text of a fix.
func lacksNamed(text, object, old string) bool {
	for line := range strings.Lines(text) {
		_, line, _ = strings.Cut(line, "ithout ")
		line, _, _ = strings.Cut(strings.ReplaceAll(line, " are accepted.", ","), ",")
		for _, m := range namedField.FindAllStringSubmatch(line, -1) {
			document := object
			if m[1] == "oldSelf" {
				document = old
			}
			var root map[string]map[string]any
			if err := json.Unmarshal([]byte(document), &root); err != nil {
				panic(err)
			}
			if m[1] != "x" && m[1] != "y" {
				if lacksPath(root["spec"], m[2]) {
					return true
				}
				continue
			}
			list, _ := root["spec"]["l"].([]any)
			for _, item := range list {
				if lacksPath(item, m[2]) {
					return true
				}
			}
		}
	}
	return false
}

// lacksPath reports whether a value has nothing at a path.
func lacksPath(value any, path string) bool {
	steps := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(`.[]"`, r) })
	for _, step := range steps {
		switch v := value.(type) {
		case map[string]any:
			value = v[property(step)]
		case []any:
			value = nil
			if len(v) > 0 {
				value = v[0]
			}
		default:
			return true
		}
	}
	return value == nil
}

// TestAdviceForRules applies fixes of generated rules. A rule with its fix has the same
// result for every object for which it has one, and the text names what changes for the
// others.
func TestAdviceForRules(t *testing.T) {
	for stream := range uint64(5) {
		t.Run(fmt.Sprint(stream), func(t *testing.T) {
			t.Parallel()
			adviceForRules(t, stream, *advised/5)
		})
	}
}

func adviceForRules(t *testing.T, stream uint64, enough int) {
	const objects = 60
	rules, fixes, evaluations, failed, changed := 0, 0, 0, 0, 0
	for seed := uint64(1); fixes < enough; seed++ {
		r := ruleMaker{rand.New(rand.NewPCG(seed, 20+stream))}
		rule := r.rule(1+r.IntN(4), false)
		found, err := Check(mustParse(t, withRule(rule)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		rules++
		for _, f := range found {
			changes, code, ok := strings.Cut("\n"+f.Fix, "\nrule: ")
			if f.Check != "rule-unguarded-optional" || !ok {
				continue
			}
			var fixed string
			if err := yaml.Unmarshal([]byte(code), &fixed); err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			fixes++
			before, after := evaluator(t, rule), evaluator(t, fixed)
			for range objects {
				object, old := r.object(), r.object()
				was, is := before(object, old), after(object, old)
				evaluations++
				if was != "accepted" && was != "violated" {
					failed++
					if is == "accepted" {
						changed++
						if !lacksNamed(changes, object, old) {
							t.Errorf("the fix of\n%s\nis\n%s\naccepts %s\nwhich was refused with %s\nand does not say so: %s", rule, fixed, object, was, changes)
						}
					}
				} else if was != is {
					t.Errorf("the rule\n%s\nsays %s of\n%s\nand with the fix\n%s\n%s", rule, was, object, fixed, is)
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	t.Logf("advice: %d rules, %d fixes, %d evaluations: 0 other results; %d of %d failures accepted, as the text says", rules, fixes, evaluations, changed, failed)
	if enough > 0 && (changed == 0 || failed == 0) {
		t.Error("no object shows what fixes are for")
	}
}
