package robustness

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/espalier-dev/espalier/conformance/robustness/check"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A Violation is a promise that was not kept: one that check has found in the history, or that the harness has seen itself.
type Violation struct {
	Checker, Message string
	Key              string // resource/name, if one key is concerned
}

func checkAll(h *history.History) []Violation {
	var out []Violation
	for _, v := range check.All(h) {
		out = append(out, Violation{Checker: v.Checker + "/" + v.Rule, Message: v.String(), Key: v.Key})
	}
	return out
}

// minimised is the smallest history in which the first of the violations still is one, in words.
func minimised(result *Result) string {
	if result.History == nil {
		return ""
	}
	var b bytes.Buffer
	for _, v := range check.All(result.History) {
		fmt.Fprintf(&b, "the part of the history that shows %s:\n", v.Checker)
		check.Print(&b, check.Minimise(result.History, v.Checker))
		break
	}
	return b.String()
}

// pictures writes porcupine's pictures of the keys that violations are about.
func pictures(dir string, result *Result) error {
	drawn := map[string]bool{}
	for _, v := range result.Violations {
		if v.Key == "" || drawn[v.Key] || len(drawn) == 5 {
			continue
		}
		drawn[v.Key] = true
		// A key that no operation names cannot be drawn.
		if err := check.Picture(filepath.Join(dir, fmt.Sprintf("key%d.html", len(drawn))), result.History, v.Key); err != nil && !errors.Is(err, check.ErrNothing) {
			return err
		}
	}
	return nil
}
