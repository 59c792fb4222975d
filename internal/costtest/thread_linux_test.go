package costtest

import (
	"runtime"
	"testing"
	"time"
)

func TestTimeIsProcessorTime(t *testing.T) {
	if took := Time(func() { time.Sleep(200 * time.Millisecond) }); took > 100*time.Millisecond {
		t.Errorf("sleep takes %v of processor time", took)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	for until := time.Now().Add(time.Minute); threadTime() < began+time.Millisecond; {
		if time.Now().After(until) {
			t.Fatal("work takes no processor time")
		}
	}
}
