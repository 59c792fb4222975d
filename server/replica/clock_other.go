//go:build !linux

package replica

import "time"

var began = time.Now()

// Clock is the time since the process was started. It may stop while the machine
// sleeps: what is said of leases is then true only of machines that do not.
func Clock() time.Duration { return time.Since(began) }
