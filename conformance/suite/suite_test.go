package suite

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestReasonsAreReadable(t *testing.T) {
	if _, err := parseReasons(reasonsText); err != nil {
		t.Error(err)
	}
	if _, err := parseReasons("TestA"); err == nil {
		t.Error("a function without a reason was taken")
	}
}

func TestFirstErrors(t *testing.T) {
	const output = `=== RUN   TestA
    server.go:12: starting something
    a_test.go:20: logged
    a_test.go:21: wanted 1
--- FAIL: TestA (0.10s)
    --- FAIL: TestA/part (0.10s)
`
	got := firstErrors(output, errors.New("exit status 1"))
	want := []string{"--- FAIL: TestA/part (0.10s)", "a_test.go:20: logged", "a_test.go:21: wanted 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := firstErrors("", errors.New("signal: killed")); !slices.Equal(got, []string{"signal: killed"}) {
		t.Errorf("without output: %q", got)
	}
}

func TestReportCountsAndExplains(t *testing.T) {
	var b strings.Builder
	passed, unexplained := Report(&b, []Result{
		{Function: "TestA", Outcome: "pass"},
		{Function: "TestB", Outcome: "fail", Errors: []string{"b_test.go:1: no"}},
		{Function: "TestC", Outcome: "fail", Reason: "row 7"},
	})
	if passed != 1 || unexplained != 1 {
		t.Errorf("passed: %d, unexplained: %d", passed, unexplained)
	}
	for _, want := range []string{"fail TestB\n    b_test.go:1: no\n", "reason: row 7\n", "\nupstream integration: passed 1 of 3\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
