package replica

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The clock is that which counts sleep: /proc/uptime is CLOCK_BOOTTIME, in hundredths of a
// second.
func TestClockIsThatOfTheMachine(t *testing.T) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skip(err)
	}
	uptime, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	if off := Clock() - time.Duration(uptime*float64(time.Second)); off < -time.Second || off > 5*time.Second {
		t.Errorf("the clock is %v off", off)
	}
}
