package doctor

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/finding"
)

func examine(t *testing.T, now time.Time) *examination {
	t.Helper()
	return &examination{now: now, report: &Report{}, counts: map[string]int{}}
}

// found are the checks that have findings, with their severities.
func (e *examination) found() string {
	var all []string
	for _, f := range e.report.Findings {
		all = append(all, f.Check+" "+f.Severity.String())
	}
	return strings.Join(all, ", ")
}

func TestClock(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for off, want := range map[time.Duration]string{0: "", 3 * time.Second: "", -4 * time.Second: "", 20 * time.Second: "clock warning", -20 * time.Second: "clock warning", 2 * time.Minute: "clock error", -time.Hour: "clock error"} {
		e := examine(t, now)
		e.clock("x", now.Add(off).Format(http.TimeFormat), now, now.Add(100*time.Millisecond))
		if got := e.found(); got != want {
			t.Errorf("%v: %s", off, got)
		}
	}
	// An answer that took a minute says little.
	e := examine(t, now)
	e.clock("x", now.Add(time.Minute).Format(http.TimeFormat), now, now.Add(time.Minute))
	if got := e.found(); got != "" {
		t.Error(got)
	}
	e.clock("x", "", now, now)
	if len(e.report.Skipped) != 1 {
		t.Error("a server without a clock passes")
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, c := range []struct {
		from, to time.Duration
		want     string
	}{
		{-day, 365 * day, ""}, {-365 * day, 20 * day, "a-expires warning"}, {-365 * day, -1, "a-expired error"}, {day, 365 * day, "a-early error"},
		{-time.Hour, 23 * time.Hour, ""}, {-20 * time.Hour, 4 * time.Hour, "a-expires warning"}, // certificates of a day
	} {
		e := examine(t, now)
		e.expiry("a", "where", "what", &x509.Certificate{NotBefore: now.Add(c.from), NotAfter: now.Add(c.to)}, finding.Error, "fix")
		if got := e.found(); got != c.want {
			t.Errorf("%v %v: %s", c.from, c.to, got)
		}
	}
}

func TestToken(t *testing.T) {
	now := time.Now()
	token := func(at time.Time) string {
		return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, at.Unix())) + ".x"
	}
	for text, want := range map[string]string{token(now.Add(-time.Hour)): "token-expired error", token(now.Add(time.Hour)): "", "opaque": "", "a.b.c": "", "e30.e30.x": ""} {
		e := examine(t, now)
		e.credentials(nil, text)
		if got := e.found(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestCRD(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"versions":[{"name":"v1","served":true,"storage":true}]},"status":{"conditions":[{"type":"Established","status":"True"}],"storedVersions":["v1"]}}`:                         "",
		`{"spec":{"versions":[{"name":"v1","served":true,"storage":true}]},"status":{"conditions":[{"type":"Established","status":"True"}],"storedVersions":["v1","v0"]}}`:                    "crd-stored-version-gone error",
		`{"status":{"conditions":[{"type":"Established","status":"False"}]}}`:                                                                                                                 "crd-not-established error",
		`{"status":{"conditions":[{"type":"Established","status":"True"},{"type":"NonStructuralSchema","status":"True"}]}}`:                                                                   "crd-non-structural warning",
		`{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"},"status":{"conditions":[{"type":"Established","status":"True"},{"type":"Terminating","status":"True","message":"waits"}]}}`: "crd-terminating warning",
	} {
		var c crd
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		e := examine(t, time.Now())
		e.crd(&c)
		if got := e.found(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// Texts of a server are bounded, and so is their number.
func TestReportIsBounded(t *testing.T) {
	e := examine(t, time.Now())
	for range 1000 {
		e.add(Finding{Check: "a", Message: "\x1b[31m" + strings.Repeat("é\n", 10_000)})
	}
	if len(e.report.Findings) != maxOfCheck || len(e.report.Skipped) != 1 {
		t.Errorf("%d findings, %d skipped", len(e.report.Findings), len(e.report.Skipped))
	}
	if text := e.report.Findings[0].Message; len(text) > maxText+3 || strings.ContainsAny(text, "\x1b\n") {
		t.Errorf("%q", text)
	}
	// A dial of what is no address is no finding.
	e.dial(context.Background(), "w", &admissionWebhook{Client: clientConfig{URL: "::"}}, 0)
}
