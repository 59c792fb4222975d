package migration

import "time"

// SetClock has a controller take the time from a function.
func SetClock(c *Config, clock func() time.Time) { c.clock = clock }
