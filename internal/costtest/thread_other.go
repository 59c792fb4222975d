//go:build !linux

package costtest

import "time"

var processStart = time.Now()

// threadTime returns wall time: there is no portable clock for one thread.
func threadTime() time.Duration { return time.Since(processStart) }
