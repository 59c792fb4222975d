package exec

import (
	"math"
	"math/big"
	"testing"
)

// Integers and floats are compared as numbers without a limit of size are.
func TestCompareIntFloat(t *testing.T) {
	for _, i := range []int64{math.MinInt64, math.MinInt64 + 1, -(1 << 53) - 1, -1, 0, 1, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64} {
		for _, f := range []float64{-1e300, -1e19, -1 << 63, math.Nextafter(-1<<63, 0), -1 << 53, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 1 << 53, math.Nextafter(1<<63, 0), 1 << 63, 1e19, 1e300} {
			if got, want := compareIntFloat(i, f), new(big.Float).SetInt64(i).Cmp(big.NewFloat(f)); got != want {
				t.Errorf("%d and %g: %d, not %d", i, f, got, want)
			}
		}
	}
}
