package format

import (
	"bytes"
	"net"
	"net/mail"
	"net/url"
)

// isURI accepts what [url.ParseRequestURI] does. Most URIs are plain enough to
// know that without asking: no escapes, no user, no address in brackets.
func isURI(text []byte) bool {
	if expressions[uri]().Match(text) {
		return true
	}
	_, err := url.ParseRequestURI(string(text))
	return err == nil
}

// isEmail accepts what [mail.ParseAddress] does, with names and comments.
func isEmail(text []byte) bool {
	if expressions[email]().Match(text) {
		return true
	}
	a, err := mail.ParseAddress(string(text))
	return err == nil && a.Address != ""
}

func isHostname(text []byte) bool {
	if len(text) > 255 {
		return false
	}
	label := 0
	for _, b := range text {
		if label++; b == '.' {
			label = 0
		}
		if label > 63 {
			return false
		}
	}
	return expressions[hostname]().Match(text)
}

func isMAC(text []byte) bool {
	_, err := net.ParseMAC(string(text))
	return err == nil
}

// notation says how numbers of addresses may be written. Upstream reads some
// addresses as Go did before 1.17, for the sake of objects that are stored.
type notation bool

const (
	strict notation = false
	sloppy notation = true // with any number of leading zeros
)

func isIPv4(text []byte) bool {
	return scanIPv4(text, sloppy) || bytes.IndexByte(text, '.') >= 0 && scanIPv6(text, sloppy)
}

func isIPv6(text []byte) bool { return scanIPv6(text, strict) }

func isCIDR(text []byte) bool {
	slash := bytes.IndexByte(text, '/')
	if slash < 0 {
		return false
	}
	address, length := text[:slash], text[slash+1:]
	digits, value := leadingNumber(length, 10)
	if digits == 0 || digits < len(length) {
		return false
	}
	if scanIPv4(address, sloppy) {
		return value <= 8*net.IPv4len
	}
	return value <= 8*net.IPv6len && scanIPv6(address, sloppy)
}

// scanIPv4 reports whether s is four numbers with dots between.
func scanIPv4(s []byte, as notation) bool {
	for i := range net.IPv4len {
		if i > 0 {
			if len(s) == 0 || s[0] != '.' {
				return false
			}
			s = s[1:]
		}
		digits, value := leadingNumber(s, 10)
		if digits == 0 || value > 255 || as == strict && digits > 1 && s[0] == '0' {
			return false
		}
		s = s[digits:]
	}
	return len(s) == 0
}

// scanIPv6 reports whether s is eight groups with colons between. "::" stands for
// at least one of them, and the last two may be written as IPv4 address.
func scanIPv6(s []byte, as notation) bool {
	const groups = net.IPv6len / 2
	read, ellipsis := 0, false
	if bytes.HasPrefix(s, []byte("::")) {
		s, ellipsis = s[2:], true
		if len(s) == 0 {
			return true
		}
	}
	for read < groups {
		digits, value := leadingNumber(s, 16)
		if digits == 0 || value > 0xffff || as == strict && digits > 4 {
			return false
		}
		if digits < len(s) && s[digits] == '.' {
			fits := read == groups-2 || ellipsis && read < groups-2
			return fits && scanIPv4(s, as) && (read+2 < groups) == ellipsis
		}
		read++
		s = s[digits:]
		if len(s) == 0 {
			break
		}
		if s[0] != ':' || len(s) == 1 {
			return false
		}
		s = s[1:]
		if s[0] == ':' {
			if ellipsis {
				return false
			}
			s, ellipsis = s[1:], true
			if len(s) == 0 {
				break
			}
		}
	}
	return len(s) == 0 && (read < groups) == ellipsis
}

// leadingNumber returns the number of digits that s begins with and their
// value, which stays above any limit of an address once it is.
func leadingNumber(s []byte, base int) (digits, value int) {
	for _, b := range s {
		d := digitOf(b)
		if d >= base {
			break
		}
		value = min(value*base+d, 1<<20)
		digits++
	}
	return digits, value
}

// digitOf returns the value of a digit, decimal or hexadecimal, or more than
// any has.
func digitOf(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b && b <= 'f':
		return int(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int(b-'A') + 10
	}
	return 16
}
