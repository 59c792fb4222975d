package format

import (
	"bytes"
	"math"
	"time"
	"unicode/utf8"
)

// isDate takes the form 2006-01-02, of a day that exists.
func isDate(text []byte) bool {
	if len(text) != len(time.DateOnly) || text[4] != '-' || text[7] != '-' {
		return false
	}
	year, ok1 := number(text[:4])
	month, ok2 := number(text[5:7])
	day, ok3 := number(text[8:])
	return ok1 && ok2 && ok3 && 1 <= month && month <= 12 && 1 <= day && day <= daysOf(year, month)
}

func daysOf(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// number returns the value of s if it is digits only.
func number(s []byte) (value int, ok bool) {
	for _, b := range s {
		if b < '0' || b > '9' {
			return 0, false
		}
		value = 10*value + int(b-'0')
	}
	return value, true
}

// isDateTime takes a date and a time with "t" between. What follows another
// "t" does not count.
func isDateTime(text []byte) bool {
	const date = len(time.DateOnly)
	if len(text) <= date || text[date]|0x20 != 't' || !isDate(text[:date]) {
		return false
	}
	clock := text[date+1:]
	if second := bytes.IndexAny(clock, "tT"); second >= 0 {
		clock = clock[:second]
	}
	if len(clock) < len(time.TimeOnly) || clock[2] != ':' || clock[5] != ':' {
		return false
	}
	hour, ok1 := number(clock[:2])
	minute, ok2 := number(clock[3:5])
	second, ok3 := number(clock[6:8])
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 59 {
		return false
	}
	clock = clock[8:]
	return isZone(clock) || isZone(cutFraction(clock))
}

// cutFraction returns what follows a separator and at least one digit, nil if s
// does not begin with these. Any character on the same line is a separator.
func cutFraction(s []byte) []byte {
	r, size := utf8.DecodeRune(s)
	if size == 0 || r == '\n' {
		return nil
	}
	digits := size
	for digits < len(s) && '0' <= s[digits] && s[digits] <= '9' {
		digits++
	}
	if digits == size {
		return nil
	}
	return s[digits:]
}

// isZone takes "z", or an offset in hours and minutes that is not checked
// further.
func isZone(s []byte) bool {
	if len(s) == 1 {
		return s[0]|0x20 == 'z'
	}
	if len(s) != len("+00:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return false
	}
	_, ok1 := number(s[1:3])
	_, ok2 := number(s[4:])
	return ok1 && ok2
}

// isDuration takes what [time.ParseDuration] does, and any text with a number
// and a unit in it.
func isDuration(text []byte) bool {
	if hasAmount(text) {
		return true
	}
	_, err := time.ParseDuration(string(text))
	return err == nil
}

// hasAmount reports whether text has a number followed by a known unit, with
// other things before, after and between, but no amount that overflows an int.
func hasAmount(text []byte) bool {
	found := false
	for i := 0; i < len(text); {
		begin, overflow := i, false
		for value := 0; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			d := int(text[i] - '0')
			overflow = overflow || value > (math.MaxInt-d)/10
			value = value*10 + d // whatever it is once it has overflowed
		}
		if i == begin {
			i++
			continue
		}
		for i < len(text) && bytes.IndexByte([]byte(" \t\n\f\r"), text[i]) >= 0 {
			i++
		}
		word := letters(text[i:])
		if len(word) == 0 {
			continue
		}
		if overflow {
			return false
		}
		found = found || isUnit(word)
		i += len(word)
	}
	return found
}

// letters returns the letters that s begins with. Of those that are not ASCII,
// only the micro sign counts.
func letters(s []byte) []byte {
	n := 0
	for n < len(s) {
		switch b := s[n] | 0x20; {
		case 'a' <= b && b <= 'z':
			n++
		case bytes.HasPrefix(s[n:], []byte("µ")):
			n += len("µ")
		default:
			return s[:n]
		}
	}
	return s
}

// isUnit reports whether a word is a short unit, or begins with a long one.
func isUnit(word []byte) bool {
	for _, u := range shortUnits {
		if bytes.EqualFold(word, u) {
			return true
		}
	}
	for _, u := range longUnits {
		if len(word) >= len(u) && bytes.EqualFold(word[:len(u)], u) {
			return true
		}
	}
	return false
}

var (
	shortUnits = bytes.Fields([]byte("s m h ms ns us µs hr d w wk"))
	longUnits  = bytes.Fields([]byte("sec min hour day week milli micro nano"))
)
