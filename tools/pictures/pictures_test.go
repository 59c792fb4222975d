package main

import (
	"os"
	"strings"
	"testing"
)

func TestPicturesAreUpToDate(t *testing.T) {
	drawn, err := draw("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(drawn) < 4 {
		t.Errorf("there are %d pictures", len(drawn))
	}
	for path, want := range drawn {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what its source says (%v): run make pictures", path, err)
		}
	}
}

func TestParse(t *testing.T) {
	d, err := parse("# a title\nrow first\n  box a: one | two\nrow second\n  box b\n\na -> b\n")
	if err != nil || d.title != "a title" || len(d.rows) != 2 || len(d.rows[0].boxes[0].lines) != 2 || len(d.arrows) != 1 {
		t.Fatalf("%+v %v", d, err)
	}
	if svg := d.svg(); strings.Count(svg, "<rect x=") != 2 || strings.Count(svg, "<path d=\"M") != 2 { // one is the tip
		t.Errorf("drawn as %s", svg)
	}
	for text, want := range map[string]string{"box a": "is no row", "row r\nbox a\na -> c": "names c", "row r\nhello": "is no row"} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "fast", "3 parsecs"} {
		if _, err := figure(text); err == nil {
			t.Errorf("%q is a figure", text)
		}
	}
}

// TestScale: a line goes through its figures in the order of their numbers, and a plot without figures is left out.
func TestScale(t *testing.T) {
	const results = `{"bench-scale": {"Figures": {"100 watches.heap": "10 MB", "1 watches.heap": "1 MB", "1 watches.resident": "100 MB", "100 watches.resident": "200 MB"}}}`
	svg, err := scale([]byte(results))
	if err != nil || strings.Count(svg, "<polyline") != 2 || strings.Count(svg, ">watches<") != 1 || strings.Contains(svg, "%!") {
		t.Fatalf("%v: %s", err, svg)
	}
	// 1 and 100 are the ends of the axis; 1 MB is its lowest value.
	for _, want := range []string{`points="64.0,232.0 294.0,`, "<tspan class=\"row\" x=\"300.0\" dy=\"12\">10 MB</tspan>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in %s", want, svg)
		}
	}
	if _, err := scale([]byte(strings.Replace(results, "10 MB", "10 parsecs", 1))); err == nil {
		t.Error("a figure without a unit that is known is drawn")
	}
}
