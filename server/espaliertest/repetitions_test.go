package espaliertest

import (
	"os"
	"strconv"
)

// Repetitions is how often tests repeat a schedule: a few times, or as often as
// `make explore` says.
func Repetitions(few int) int {
	if n, err := strconv.Atoi(os.Getenv("ESPALIER_REPEAT")); err == nil {
		return n
	}
	return few
}
