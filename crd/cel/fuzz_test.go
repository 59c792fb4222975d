package cel

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// FuzzRules evaluates a rule, which is also the messageExpression of another, on
// a change from one object to another, with and without counting costs.
func FuzzRules(f *testing.F) {
	spec := anObject[strings.Index(anObject, `"spec":`)+7 : len(anObject)-1]
	for _, e := range expressions {
		f.Add(e, spec, spec)
	}
	f.Add("self == oldSelf", spec, `{"i":1}`)
	f.Add("oldSelf.i < self.i && self.a__dash__b != self.namespace", `{"a-b":"x","i":1}`, spec)
	f.Add("self.l.map(x, x).sort() == self.l.distinct()", spec, `{}`)
	f.Add("selfType\x01{} == self", spec, `{}`)
	f.Add("dyn(self).map(k, dyn(self)[k]).size() > 0", `{"unknown":1,"i":1.5,"l":"x","m":[],"s":null}`, `{"set":{}}`)
	f.Add("dyn([self]).transformMap(i, o, o.m).all(k, v, v == self.m)", spec, spec)
	f.Fuzz(func(t *testing.T, rule, object, old string) {
		if len(rule) > 300 || len(object) > 2000 || len(old) > 2000 {
			return
		}
		quoted := string(jsondoc.AppendString(nil, rule))
		schema := specWith(everything, `{"rule":`+quoted+`,"message":"m"},{"rule":"1 > 2 + size(self.s)","messageExpression":`+quoted+`,"message":"n"}`)
		if _, err := Check([]byte(schema), CheckOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := Costs([]byte(schema), CheckOptions{}); err != nil {
			t.Fatal(err)
		}
		s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{})
		if err != nil {
			return // the rule is blank
		}
		set, err := compilePart(bridge.Plan(s), true)
		if err != nil {
			t.Fatal(err)
		}
		documents := make([]string, 2)
		for i, text := range []string{object, old} {
			d, err := jsondoc.Parse([]byte(`{"spec":`+text+`}`), jsondoc.Limits{})
			if err != nil {
				return
			}
			documents[i] = string(d.AppendCanonical(nil, jsondoc.Root))
			d.Release()
		}
		errs, warnings, ok := attempt(t, set, documents[0], documents[1], false)
		counted, warned, _ := attempt(t, set, documents[0], documents[1], true)
		if ok && (!slices.Equal(errs, counted) || !slices.Equal(warnings, warned)) {
			t.Errorf("%q on %q, %q:\n%q %q\n%q %q", rule, documents[0], documents[1], errs, warnings, counted, warned)
		}
	})
}
