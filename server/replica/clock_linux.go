package replica

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the time since the machine was started. Unlike the monotonic clock of package
// time it does not stop while the machine sleeps, and no user can set it: etcd, on another
// machine, ends a lease while this one sleeps.
func Clock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("reading CLOCK_BOOTTIME, which Linux has had since 2.6.39: " + err.Error())
	}
	return time.Duration(now.Nano())
}
