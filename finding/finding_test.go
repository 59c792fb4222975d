package finding_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
)

func TestSeverities(t *testing.T) {
	for i, name := range []string{"error", "warning", "info"} {
		s, err := finding.ParseSeverity(name)
		if err != nil || s.String() != name || s != finding.Severity(i) {
			t.Errorf("%s is %v, %v", name, s, err)
		}
		if text, err := json.Marshal(s); err != nil || string(text) != `"`+name+`"` {
			t.Errorf("%s in JSON: %s, %v", name, text, err)
		}
	}
	if got := finding.Severity(7).String(); got != "Severity(7)" {
		t.Errorf("one that does not exist is %q", got)
	}
	if _, err := finding.ParseSeverity("fatal"); err == nil {
		t.Error("fatal is a severity")
	}
	if !finding.Error.AtLeast(finding.Warning) || !finding.Info.AtLeast(finding.Info) || finding.Info.AtLeast(finding.Warning) {
		t.Error("an error is graver than a warning, which is graver than an info")
	}
	var zero finding.Finding
	if zero.Severity != finding.Error {
		t.Error("what nobody has graded is not an error")
	}
}

func TestErrorIsTheServers(t *testing.T) {
	f := finding.Finding{Type: field.ErrorTypeRequired, Path: "spec.group", Detail: "must be set"}
	if got, want := f.Error(), field.Required(field.NewPath("spec", "group"), "must be set").Error(); got != want {
		t.Errorf("%q, and the server says %q", got, want)
	}
	advice := finding.Finding{Severity: finding.Info, Path: "spec", Detail: "is long"}
	if advice.Error() != "spec: is long" {
		t.Errorf("%q", advice.Error())
	}
	if errs := finding.Errors([]finding.Finding{advice, f}); len(errs) != 1 || errs[0].Path != f.Path {
		t.Errorf("%v", errs)
	}
}
