package fix_test

import (
	"testing"

	"github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
)

// TestMeans demands that for every rule that servers refuse schemas for it is
// known whether it can be fixed.
func TestMeans(t *testing.T) {
	fixable := 0
	for _, r := range compile.Checks {
		text, ok := fix.Means(r.ID)
		if r.Severity != finding.Error {
			if text != "" {
				t.Errorf("%s is no error, and is fixed: %s", r.ID, text)
			}
			continue
		}
		if text == "" {
			t.Errorf("nothing is said about how to fix %s", r.ID)
		}
		if ok {
			fixable++
		}
	}
	if fixable < 40 {
		t.Errorf("%d rules are fixable", fixable)
	}
	if text, ok := fix.Means("no-such-rule"); text != "" || ok {
		t.Errorf("Means knows a rule that there is not: %s", text)
	}
}
