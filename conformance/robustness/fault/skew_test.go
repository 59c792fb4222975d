package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A program that is compiled with the other time package has a clock that is wrong by as much as it is told.
func TestSkew(t *testing.T) {
	dir := t.TempDir()
	file, err := overlay(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"time\"\n\nfunc main() { print(time.Now().Unix()) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "clock")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-o", program, source)
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, skew := range []int64{0, 3600, -1800} {
		command := exec.CommandContext(t.Context(), program)
		command.Env = append(os.Environ(), SkewVariable+"="+strconv.FormatInt(skew, 10))
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		now, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := now - time.Now().Unix(); wrong < skew-60 || wrong > skew+60 {
			t.Errorf("told to be wrong by %d s, it is by %d s", skew, wrong)
		}
	}
}
