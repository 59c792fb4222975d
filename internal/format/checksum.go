package format

// isISBN10 takes nine digits and a check digit, which may be X.
func isISBN10(text []byte) bool {
	code, n := withoutSeparators(text)
	if n != 10 {
		return false
	}
	sum := 0
	for i, b := range code[:n] {
		switch {
		case '0' <= b && b <= '9':
			sum += (i + 1) * int(b-'0')
		case b == 'X' && i == n-1:
			sum += 10 * 10
		default:
			return false
		}
	}
	return sum%11 == 0
}

// isISBN13 accepts thirteen digits. The last is a check digit.
func isISBN13(text []byte) bool {
	code, n := withoutSeparators(text)
	if n != len(code) {
		return false
	}
	sum := 0
	for i, b := range code {
		if b < '0' || b > '9' {
			return false
		}
		sum += (1 + 2*(i%2)) * int(b-'0')
	}
	return sum%10 == 0
}

// withoutSeparators returns what is left of an ISBN without dashes and spaces;
// n is more than fits the code if there is too much.
func withoutSeparators(text []byte) (code [13]byte, n int) {
	for _, b := range text {
		switch b {
		case '-', ' ', '\t', '\n', '\f', '\r':
			continue
		}
		if n == len(code) {
			return code, n + 1
		}
		code[n] = b
		n++
	}
	return code, n
}

// isCreditCard takes the digits of a text, whatever else there is, if they are
// a number that an issuer assigns and their checksum is right.
func isCreditCard(text []byte) bool {
	var digits [16]int
	n := 0
	for _, b := range text {
		if b < '0' || b > '9' {
			continue
		}
		if n == len(digits) {
			return false
		}
		digits[n] = int(b - '0')
		n++
	}
	prefix := 0
	for _, d := range digits[:4] {
		prefix = 10*prefix + d
	}
	return isIssued(prefix, n) && luhn(digits[:n])%10 == 0
}

// isIssued reports whether there are card numbers of n digits whose first four
// are prefix.
func isIssued(prefix, n int) bool {
	switch first2 := prefix / 100; {
	case prefix/1000 == 4:
		return n == 13 || n == 16
	case 51 <= first2 && first2 <= 55, prefix == 6011, first2 == 65, first2 == 35:
		return n == 16
	case first2 == 34, first2 == 37, prefix == 2131, prefix == 1800:
		return n == 15
	case 300 <= prefix/10 && prefix/10 <= 305, first2 == 36, first2 == 38:
		return n == 14
	}
	return false
}

// luhn returns the sum of the digits where every second one from the right is
// doubled, and counts with its own digits' sum.
func luhn(digits []int) int {
	sum := 0
	for i := range digits {
		d := digits[len(digits)-1-i]
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum
}
