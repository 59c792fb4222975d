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
	if len(drawn) < 3 {
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
