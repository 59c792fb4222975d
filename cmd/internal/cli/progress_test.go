package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
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
	var out bytes.Buffer
	a := &App{Err: &out}
	bar, counter, stop := a.progress(1000, "files"), a.count("exporting"), a.waiting("deleting")
	time.Sleep(patience + 300*time.Millisecond)
	bar.stop()
	counter.stop()
	stop()
	if out.Len() > 0 {
		t.Errorf("progress is shown where there is no terminal: %q", out.String())
	}
}

// TestProgressOnTerminal: a line is shown after a second, and removed at the end.
func TestProgressOnTerminal(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("the program script, which gives a command a terminal, is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), script, "-qec", self+" -test.run ^TestShowsProgress$", "/dev/null")
	cmd.Env = append(os.Environ(), showsProgress+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := string(out); !strings.Contains(text, "\rdeleting: 1s\x1b[K") || !strings.Contains(text, "\r\x1b[K") {
		t.Errorf("%q", text)
	}
}

const showsProgress = "ESPALIER_TEST_SHOWS_PROGRESS"

// TestShowsProgress is what TestProgressOnTerminal runs.
func TestShowsProgress(t *testing.T) {
	if os.Getenv(showsProgress) == "" {
		t.Skip("TestProgressOnTerminal runs it")
	}
	stop := (&App{Err: os.Stderr}).waiting("deleting")
	time.Sleep(patience + 300*time.Millisecond)
	stop()
	stop() // a second time changes nothing
}
