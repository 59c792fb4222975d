package launch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/espalier-dev/espalier/conformance/launch"
)

func TestStopPrograms(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("this system has no /proc")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	start := func(dir string) *exec.Cmd {
		link := filepath.Join(dir, "sleep")
		if err := os.Symlink(sleep, link); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(link, "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	dir := t.TempDir()
	inside, beside := start(dir), start(t.TempDir())
	launch.StopPrograms(dir)
	if err := inside.Wait(); err == nil {
		t.Error("a program of the folder ended by itself")
	}
	// What ends it tells whether it was killed before.
	_ = beside.Process.Signal(syscall.SIGTERM)
	if err := beside.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("a program of another folder was stopped: %v", err)
	}
}
