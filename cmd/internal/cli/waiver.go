package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/finding"
)

// waiver accepts changes of CRDs that diff would report.
type waiver struct {
	CRD    string       `json:"crd,omitempty"`    // pattern of names; none means all
	Path   string       `json:"path,omitempty"`   // pattern of field paths in objects, such as spec.template.*; none means all
	Checks []finding.ID `json:"checks,omitempty"` // none means all
	Reason string       `json:"reason"`
	Until  string       `json:"until,omitempty"` // the last day, such as 2027-01-31
}

// day is how a waiver says when it ends.
const day = "2006-01-02"

func (w *waiver) check() error {
	if w.Reason == "" {
		return errors.New("a waiver needs a reason")
	}
	if w.CRD == "" && w.Path == "" && len(w.Checks) == 0 {
		return fmt.Errorf("the waiver %q accepts all changes: set crd, path or checks", w.Reason)
	}
	for _, pattern := range []string{w.CRD, w.Path} {
		if !doublestar.ValidatePattern(pattern) {
			return fmt.Errorf("%q is not a pattern", pattern)
		}
	}
	for _, id := range w.Checks {
		if r, known := checkByID(id); !known || r.Group != "changes" {
			return fmt.Errorf("there is no check of changes %q", id)
		}
	}
	if _, err := time.Parse(day, w.Until); err != nil && w.Until != "" {
		return fmt.Errorf("until must be a day such as 2027-01-31, not %q", w.Until)
	}
	return nil
}

// accepts reports whether the waiver is about a change and has not ended.
func (w *waiver) accepts(d *report.Diagnostic, now time.Time) bool {
	if until, err := time.ParseInLocation(day, w.Until, now.Location()); err == nil && now.After(until.AddDate(0, 0, 1)) {
		return false
	}
	return (w.CRD == "" || doublestar.MatchUnvalidated("CustomResourceDefinition/"+w.CRD, d.Object)) &&
		(w.Path == "" || doublestar.MatchUnvalidated(w.Path, d.Path)) &&
		(len(w.Checks) == 0 || slices.Contains(w.Checks, d.Check))
}

// waive removes the changes that the settings accept, and returns their number.
func (s *settings) waive(r *report.Report, now time.Time) int {
	before := len(r.Diagnostics)
	r.Diagnostics = slices.DeleteFunc(r.Diagnostics, func(d report.Diagnostic) bool {
		return slices.ContainsFunc(s.Waivers, func(w waiver) bool { return w.accepts(&d, now) })
	})
	return before - len(r.Diagnostics)
}
