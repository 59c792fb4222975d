package cel

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Ten bytes must not take a minute, whether the cost of the rule is counted or not.
func TestCostlyQuantities(t *testing.T) {
	for _, rule := range []string{
		"isQuantity(self.q) && quantity(self.q).isGreaterThan(quantity('1'))",
		"quantity(self.q).add(1).asInteger() > 0",
		"[self.q].map(q, quantity(q)).all(q, q.isLessThan(quantity('2')))",
		"self.l.all(x, self.l.all(y, self.l.all(z, quantity(self.q).compareTo(quantity('2')) < 0)))", // its cost is counted
	} {
		schema := specWith(`"q":{"type":"string","maxLength":20},"l":{"type":"array","maxItems":50,"items":{"type":"integer"}}`, fmt.Sprintf(`{"rule":%q}`, rule))
		for q, fine := range map[string]bool{"1.5": true, "1e9999": true, "9e99999999": false, "9E+99999999": false, "9e-99999999": false} {
			began := time.Now()
			v := validate(t, schema, `{"spec":{"q":"`+q+`","l":[1,2]}}`, "")
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s took %v with %s", rule, took, q)
			}
			bounded := false
			for _, text := range rendered(v.Errors) {
				bounded = bounded || strings.Contains(text, "at most 4 in its exponent")
			}
			if bounded == fine {
				t.Errorf("%s with %s: %q", rule, q, rendered(v.Errors))
			}
		}
	}
}
