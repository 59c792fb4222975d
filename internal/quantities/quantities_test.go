package quantities

import (
	"strings"
	"testing"
)

func TestCostly(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "1": false, "1e99": false, "-1.5E+99": false, "e": false, "1e": false, "x1e99999": false, "1e00000001": false, "1Ei": false,
		"e22147b6-038f-4f96-a0f5-1579956521aa": false, "9e22147b-038f-4f96-a0f5-157995652100": false, "1e99999x": false,
		"1e100": true, "1.2345678901234567890123e9999": true, "9e99999999": true, " -1.5E+99999": true, "1e-99999": true, "e99999": true, "1e00099999": true,
		strings.Repeat("1", MaxLength): false, strings.Repeat("1", MaxLength+1): true, "0." + strings.Repeat("1", MaxLength): true,
	} {
		if Costly(text) != want {
			t.Errorf("%.20q: %v", text, !want)
		}
	}
}

func TestExponentEnd(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "x123": 0, "e": 0, "e+": 0, "e12": 0, "e012": 0, "e-99": 0, "e12x": 0,
		"e123": 4, "E123": 4, "e+123": 5, "E-123": 5, "e00123": 6, "e12345": 4, "e123x": 4, "e900": 4, "e099": 0,
	} {
		if got := ExponentEnd(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
		if got := ExponentEnd([]byte(text)); got != want {
			t.Errorf("%q as bytes: %d, want %d", text, got, want)
		}
	}
}
