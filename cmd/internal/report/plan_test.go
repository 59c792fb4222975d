package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/impact"
)

func planned(outcomes ...impact.Outcome) *Plan {
	p := &Plan{CRD: "crons.example.com"}
	p.Summary.Most = 10
	for i := range outcomes {
		outcomes[i].Version = "v1"
		p.Summary.Add(&outcomes[i])
	}
	return p
}

func TestHeadline(t *testing.T) {
	loses := impact.Outcome{Effects: impact.LosesFields | impact.RefusedOnCreate, Lost: []string{"a"}}
	gets := impact.Outcome{Effects: impact.NewDefaults, Defaulted: []string{"a"}}
	for want, p := range map[string]*Plan{
		"there are no objects":                                          planned(),
		"the only object stays as it is":                                planned(impact.Outcome{}),
		"all 2 objects stay as they are":                                planned(impact.Outcome{}, impact.Outcome{}),
		"1 of 1 object loses data, 1 is refused if it is created again": planned(loses),
		"2 of 4 objects lose data, 2 are refused if they are created again, 1 changes otherwise, 1 stays as it is": planned(loses, loses, gets, impact.Outcome{}),
		"1 of 3 objects gets new defaults, 2 stay as they are":                                                     planned(gets, impact.Outcome{}, impact.Outcome{}),
		"1 of 1 object cannot be read today":                                                                       planned(impact.Outcome{Effects: impact.UnreadableToday}),
		"the server refuses this change; there are no objects":                                                     {Refused: []Note{{Message: "a"}}},
		"the server refuses this change; it is not known":                                                          {Refused: []Note{{Message: "a"}}, Unplanned: "it is not known"},
	} {
		if got := p.headline(); got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
	}
}

// Every effect has words for several objects and for one, and what to do.
func TestEveryEffect(t *testing.T) {
	all := (^impact.Effects(0)).Each()
	if len(all) != len(planFixes) {
		t.Errorf("%d effects, %d fixes", len(all), len(planFixes))
	}
	for _, e := range all {
		p := planned(impact.Outcome{Effects: e}, impact.Outcome{Effects: e})
		var out bytes.Buffer
		if err := (Plans{p}).Write(&out, "text", Options{}); err != nil {
			t.Fatal(err)
		}
		if planFixes[e] == "" || !strings.Contains(out.String(), "\n2 objects "+e.Says()+":\n") || e.SaysOf(1) == "" {
			t.Errorf("%s:\n%s", e, &out)
		}
		if p.Breaks() != (e&impact.Breaking != 0) {
			t.Errorf("%s breaks: %t", e, p.Breaks())
		}
	}
}

// What objects say does not become markup, and moves no cursor.
func TestPlansAreSafe(t *testing.T) {
	evil := "\x1b[2J\u202e<script>alert(1)</script> ![x](http://x) @all `|` \n# x\n" + strings.Repeat("long ", 1000)
	p := planned(impact.Outcome{
		Namespace: evil, Name: evil, Effects: ^impact.Effects(0), Lost: []string{evil}, Explanation: evil, Managers: []string{evil}, Owners: []string{evil},
		Create: []impact.Refusal{{Field: evil, Type: evil, Message: evil, Detail: evil}}, DeadManagers: []string{evil},
	})
	p.CRD, p.ID, p.Approve, p.Notes, p.Refused = evil, evil, "kubectl", []string{evil}, []Note{{Message: evil, Place: Place{File: evil}}}
	for _, format := range []string{"text", "markdown", "html"} {
		var out bytes.Buffer
		if err := (Plans{p, p}).Write(&out, format, Options{}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u202e") {
			t.Errorf("%s: a cursor moves", format)
		}
		if format == "html" && strings.Contains(out.String(), "<script>alert") {
			t.Errorf("%s", &out)
		}
		if format != "markdown" {
			continue
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "> ") && strings.ContainsAny(line, "<@") {
				t.Errorf("%s", line)
			}
		}
	}
	if err := (Plans{p}).Write(&bytes.Buffer{}, "sarif", Options{}); err == nil {
		t.Error("there is a format sarif")
	}
}

// A plan of many places and names stays short.
func TestPlansAreBounded(t *testing.T) {
	var all []impact.Outcome
	for i := range 1000 {
		name := strings.Repeat("x", i%300+1)
		all = append(all, impact.Outcome{Name: name, Effects: impact.LosesFields, Lost: []string{"spec." + name}, Managers: []string{name}})
	}
	p := planned(all...)
	p.Summary.Listed = nil
	for _, format := range []string{"text", "markdown", "html"} {
		var out bytes.Buffer
		if err := (Plans{p}).Write(&out, format, Options{}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines > 80 || !strings.Contains(out.String(), "280 more places") {
			t.Errorf("%s: %d lines", format, lines)
		}
	}
}

// The error about rules that were not evaluated is no place of an object.
func TestUncheckedRulesAreNotShown(t *testing.T) {
	p := planned(impact.Outcome{Name: "a", Effects: impact.RefusedOnCreate, Create: []impact.Refusal{{Field: "<nil>", Message: "not checked"}, {Field: "spec.b", Message: "wrong"}}})
	var out bytes.Buffer
	if err := (Plans{p}).Write(&out, "text", Options{}); err != nil || strings.Contains(out.String(), "not checked") || strings.Count(out.String(), "spec.b") != 2 {
		t.Errorf("%s %v", &out, err)
	}
}

// A field may be called anything, also what looks like the next lines of the report.
func TestPlanStaysOnItsLines(t *testing.T) {
	evil := "spec.x\napprove: curl evil\n::stop-commands::x"
	p := &Plan{CRD: "crons.example.com", Summary: impact.Summary{Most: 1}}
	p.Summary.Add(&impact.Outcome{Name: "a\nplan: b", Version: "v1", Effects: impact.LosesFields, Lost: []string{evil}})
	for _, format := range PlanFormats {
		var out bytes.Buffer
		if err := (Plans{p}).Write(&out, format, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "approve: curl") || strings.HasPrefix(text, "plan: b") || strings.HasPrefix(text, "::") {
				t.Errorf("%s: %s", format, line)
			}
		}
	}
}
