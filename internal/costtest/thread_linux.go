package costtest

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime returns the processor time of the calling thread, which other
// processes on the machine do not add to. (getrusage counts in ticks on some
// kernels; this clock does not.)
func threadTime() time.Duration {
	const clockThreadCPUTime = 3
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPUTime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}
