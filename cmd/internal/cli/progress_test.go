package cli

import (
	"io"
	"strings"
	"testing"
)

func TestProgressLine(t *testing.T) {
	p := &progress{total: 3, noun: "files"}
	for done, want := range []string{strings.Repeat("░", 30) + " 0/3 files", strings.Repeat("█", 10) + strings.Repeat("░", 20) + " 1/3 files",
		strings.Repeat("█", 20) + strings.Repeat("░", 10) + " 2/3 files", strings.Repeat("█", 30) + " 3/3 files"} {
		if got := p.line(); got != want {
			t.Errorf("%d: %s", done, got)
		}
		p.add(1)
	}
}

// TestNoProgressInFiles: only a terminal shows progress.
func TestNoProgressInFiles(t *testing.T) {
	p := (&App{Err: io.Discard}).progress(1000, "files")
	p.add(1)
	p.stop()
	if p.quit != nil {
		t.Error("progress is shown where there is no terminal")
	}
}
