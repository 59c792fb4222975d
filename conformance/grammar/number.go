package grammar

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Forms are the written forms of numbers that Form tells apart.
var Forms = []string{
	"0", "-0", "0.0", "-0.0", "0e0", "int", "negative int", "above 2^53", "2^63-1", "-2^63", "2^63", "below -2^63", "2^64 and more",
	"n.0", "ne+", "ne-", "fraction", "long fraction", "huge", "tiny", "overflow", "underflow",
}

// written has numbers of every form.
var written = []string{
	"0", "-0", "0.0", "-0.0", "0e0", "-0e-5", "0E+3", "1", "2", "7", "-1", "-5", "1.0", "1.00", "1e0", "10E-1", "1e+0", "100e-2", "1E0", "2.0", "20e-1", "1e2", "1E2", "1e+2", "100", "100.0", "-1.0", "-1e0", "-10e-1",
	"1.5", "-1.5", "0.5", "0.1", "0.3", "2.5", "0.30000000000000004", "0.1000000000000000055511151231257827", "1.00000000000000000000000000001", "2.99999999999999999999999999999",
	"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "9007199254740993.0", "9007199254740992.5",
	"9223372036854775806", "9223372036854775807", "9223372036854775807.0", "9223372036854775808", "9223372036854775808.0", "9223372036854775809", "-9223372036854775807", "-9223372036854775808", "-9223372036854775808.0", "-9223372036854775809",
	"9223372036854774784", "9223372036854774784.0", "9223372036854775296", "18446744073709551615", "18446744073709551616", "1e19", "1e18", "1e20", "1e21", "1e22", "-1e19", "123456789012345678901234567890", "123456789012345678901234567890.5",
	"2147483647", "2147483648", "-2147483648", "-2147483649", "2147483647.0", "4294967295", "4294967296", "3.4028234663852886e38", "3.4028236e38", "-3.5e38", "1e39", "16777217", "16777217.5",
	"1e308", "1.7976931348623157e308", "-1.7976931348623157e308", "1.7976931348623159e308", "1e400", "-1e400", "1e-400", "5e-324", "-5e-324", "2e-324", "2.2250738585072014e-308", "1e-7", "0.000001", "0.0000001", "123e-20",
}

// Form names the written form of a number.
func Form(raw string) string {
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return "overflow"
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(raw), "e")
	whole, fraction, point := strings.Cut(mantissa, ".")
	if f == 0 {
		switch {
		case strings.Trim(mantissa, "-.0") != "":
			return "underflow"
		case scientific:
			return "0e0"
		case raw == "0", raw == "-0":
			return raw
		case raw[0] == '-':
			return "-0.0"
		}
		return "0.0"
	}
	if !scientific && !point {
		return integerForm(raw)
	}
	switch magnitude := math.Abs(f); {
	case magnitude >= 1e300:
		return "huge"
	case magnitude < 1e-300:
		return "tiny"
	case len(fraction) > 17 || len(whole) > 20 && f != math.Trunc(f):
		return "long fraction"
	case f != math.Trunc(f):
		return "fraction"
	case !scientific:
		return "n.0"
	case strings.HasPrefix(exponent, "-"):
		return "ne-"
	}
	return "ne+"
}

func integerForm(raw string) string {
	n, ok := new(big.Int).SetString(raw, 10)
	if !ok {
		return "overflow"
	}
	switch {
	case raw == "9223372036854775807":
		return "2^63-1"
	case raw == "-9223372036854775808":
		return "-2^63"
	case n.BitLen() > 64:
		if n.Sign() < 0 {
			return "below -2^63"
		}
		return "2^64 and more"
	case !n.IsInt64() && n.Sign() < 0:
		return "below -2^63"
	case !n.IsInt64():
		return "2^63"
	case n.Sign() < 0:
		return "negative int"
	case n.BitLen() > 53:
		return "above 2^53"
	}
	return "int"
}

// isNumber reports whether the JSON text is a number.
func isNumber(raw string) bool {
	return raw != "" && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// rewritten has other forms of the same number, as far as it is a small one, and the number itself.
func rewritten(raw string) []string {
	list := []string{raw}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return list
	}
	list = append(list, strconv.FormatFloat(f, 'e', -1, 64))
	if _, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return append(list, raw+".0", raw+".000", raw+"e0", raw+"E+0", raw+"0e-1", raw+"000E-03")
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e22 {
		plain := strconv.FormatFloat(f, 'f', 0, 64)
		return append(list, plain, plain+".0", plain+"00e-2")
	}
	if n := strings.IndexAny(raw, "eE"); n < 0 {
		list = append(list, raw+"0", raw+"e0", raw+"0000000000000000000000")
	}
	return list
}

// around has numbers at, just below and just above a bound, in several forms.
func around(raw string) []string {
	list := rewritten(raw)
	r, ok := new(big.Rat).SetString(raw)
	if !ok || len(raw) > 400 || strings.ContainsAny(raw, "eE") && len(raw) > 25 {
		return list
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.Abs(f) > 1e30 || f != 0 && math.Abs(f) < 1e-30 {
		return append(list, strconv.FormatFloat(math.Nextafter(f, 0), 'g', -1, 64))
	}
	// The whole numbers on both sides, also those of the float that stands for the bound.
	exact := new(big.Rat)
	exact.SetFloat64(f)
	for _, x := range []*big.Rat{r, exact} {
		floor := new(big.Int).Div(x.Num(), x.Denom())
		for _, delta := range []int64{-1, 0, 1, 2} {
			n := new(big.Int).Add(floor, big.NewInt(delta)).String()
			list = append(list, n)
			if delta != 2 {
				list = append(list, n+".0")
			}
		}
	}
	for _, next := range []float64{math.Nextafter(f, math.Inf(-1)), math.Nextafter(f, math.Inf(1)), f - 0.5, f + 0.5} {
		list = append(list, strconv.FormatFloat(next, 'f', -1, 64))
	}
	if f == 0 {
		list = append(list, "-0", "0.0", "-0.0", "0e0", "5e-324", "-5e-324", "2e-324")
	}
	return list
}

// multiples has numbers that are and that nearly are multiples of a divisor.
func multiples(raw string) []string {
	list := append(around(raw), "0", "-0", "0.0", "-0.0")
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f == 0 || math.Abs(f) > 1e30 || math.Abs(f) < 1e-30 {
		return list
	}
	for _, k := range []float64{2, 3, 7, 10, 1000, 1 << 53, -3, 0.5, 1.0000001} {
		x := f * k
		list = append(list, strconv.FormatFloat(x, 'f', -1, 64), strconv.FormatFloat(math.Nextafter(x, 0), 'g', -1, 64))
		if x == math.Trunc(x) {
			list = append(list, strconv.FormatFloat(x+1, 'f', 0, 64), strconv.FormatFloat(x, 'f', 1, 64))
		}
	}
	return list
}
