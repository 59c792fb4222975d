package gctune

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// percent is what is set now.
func percent() int {
	now := debug.SetGCPercent(normal)
	debug.SetGCPercent(now)
	return now
}

func TestLateAndNormal(t *testing.T) {
	t.Setenv("GOGC", "")
	runtime.GC()
	one, other := Late(), Late()
	if got := percent(); got < 2*normal {
		t.Errorf("with a small heap it is %d", got)
	}
	one()
	one()
	if got := percent(); got < 2*normal {
		t.Errorf("one of two has ended, and it is %d", got)
	}
	other()
	if got := percent(); got != normal {
		t.Errorf("both have ended, and it is %d", got)
	}
}

func TestSomebodyKnowsBetter(t *testing.T) {
	t.Setenv("GOGC", "50")
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	defer Late()()
	if got := percent(); got != 50 {
		t.Errorf("it is %d", got)
	}
}
