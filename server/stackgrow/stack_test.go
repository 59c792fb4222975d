package stackgrow_test

import (
	"testing"

	"github.com/espalier-dev/espalier/server/stackgrow"
)

// deep calls itself with frames of about 200 bytes.
//
//go:noinline
func deep(n int) int {
	var frame [20]int
	frame[n%20] = n
	if n == 0 {
		return frame[0]
	}
	return deep(n-1) + frame[n%20]
}

// inGoroutine runs f on a stack of its own.
func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

func TestReserveAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, stackgrow.Reserve); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGrowing(b *testing.B) {
	for b.Loop() {
		inGoroutine(func() { deep(80) })
	}
}

func BenchmarkReserved(b *testing.B) {
	for b.Loop() {
		inGoroutine(func() { stackgrow.Reserve(); deep(80) })
	}
}
