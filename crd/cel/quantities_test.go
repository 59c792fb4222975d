package cel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// Ten bytes must not take a minute, whether the cost of the rule is counted or not.
func TestCostlyQuantities(t *testing.T) {
	for _, rule := range []string{
		"isQuantity(self.q) && quantity(self.q).isGreaterThan(quantity('1'))",
		"quantity(self.q).add(1).asInteger() > 0",
		"[self.q].map(q, quantity(q)).all(q, q.isLessThan(quantity('2')))",
		"self.l.all(x, self.l.all(y, self.l.all(z, quantity(self.q).compareTo(quantity('2')) < 0)))",
	} {
		schema := specWith(`"q":{"type":"string","maxLength":20},"l":{"type":"array","maxItems":50,"items":{"type":"integer"}}`, fmt.Sprintf(`{"rule":%q}`, rule))
		for q, fine := range map[string]bool{"1.5": true, "1e99": true, "1.2345678901e9999": false, "9e99999999": false, "9E+99999999": false, "9e-99999999": false} {
			var v espalier.Validation
			costtest.Within(t, 5*time.Second, func() { v = validate(t, schema, `{"spec":{"q":"`+q+`","l":[1,2]}}`, "") })
			if err := counted(t, schema, `{"spec":{"q":"`+q+`","l":[1,2]}}`); (err != nil && strings.Contains(err.Error(), "at most 2 in its exponent")) == fine {
				t.Errorf("%s with %s, counted: %v", rule, q, err)
			}
			bounded := false
			for _, text := range rendered(v.Errors) {
				bounded = bounded || strings.Contains(text, "at most 2 in its exponent")
			}
			if bounded == fine {
				t.Errorf("%s with %s: %q", rule, q, rendered(v.Errors))
			}
		}
	}
}

// counted returns the error of the first rule of spec if its cost is counted.
func counted(t *testing.T, schema, object string) error {
	t.Helper()
	s, set := compileSchema(t, schema)
	spec := bridge.Plan(s).Props.At(bridge.Plan(s).Props.Lookup([]byte("spec"))).Node
	e, bad := newScope(set.lang, spec, false, newSizes(set.views)).parseRule(set.programs(spec, false).rules[0].rule)
	if bad != nil {
		t.Fatal(bad.detail)
	}
	program, err := e.countingProgram()
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, object)
	r := reader{}
	r.use(d, set.views)
	v, _ := d.Get(0, "spec")
	_, _, err = program.Eval(&variables{self: r.root(v, spec, false)})
	return err
}
