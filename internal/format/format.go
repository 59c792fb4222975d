package format

import (
	"encoding/hex"
	"strings"
)

// Format is a string format; zero is none.
type Format uint8

// The formats, in the order of names.
const (
	none Format = iota
	bsonObjectID
	uri
	email
	hostname
	ipv4
	ipv6
	cidr
	mac
	uuid
	uuid3
	uuid4
	uuid5
	isbn
	isbn10
	isbn13
	creditCard
	ssn
	hexColor
	rgbColor
	base64
	password
	date
	duration
	dateTime
	k8sShortName
	k8sLongName
	count
)

var names = [count]string{"",
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
	"isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration",
	"datetime", "k8sshortname", "k8slongname"}

// Lookup returns the format called name, zero if it is not one that the API
// server knows. Dashes do not count.
func Lookup(name string) Format {
	name = strings.ReplaceAll(name, "-", "")
	for i, n := range names {
		if n == name {
			return Format(i)
		}
	}
	return none
}

// Since134 reports whether API servers know the format since Kubernetes 1.34 only.
func (f Format) Since134() bool { return f == k8sShortName || f == k8sLongName }

// String returns the format's name without dashes, "" for none.
func (f Format) String() string { return names[f] }

// Match reports whether text has the format. Every text has none.
func (f Format) Match(text []byte) bool {
	switch f {
	case none, password:
		return true
	case bsonObjectID:
		return isObjectID(text)
	case uri:
		return isURI(text)
	case email:
		return isEmail(text)
	case hostname:
		return isHostname(text)
	case ipv4:
		return isIPv4(text)
	case ipv6:
		return isIPv6(text)
	case cidr:
		return isCIDR(text)
	case mac:
		return isMAC(text)
	case isbn:
		return isISBN10(text) || isISBN13(text)
	case isbn10:
		return isISBN10(text)
	case isbn13:
		return isISBN13(text)
	case creditCard:
		return isCreditCard(text)
	case ssn:
		return len(text) == len("123-45-6789") && expressions[f]().Match(text)
	case base64:
		return isBase64(text)
	case date:
		return isDate(text)
	case duration:
		return isDuration(text)
	case dateTime:
		return isDateTime(text)
	case k8sShortName:
		return len(text) <= 63 && expressions[f]().Match(text)
	case k8sLongName:
		return len(text) <= 253 && expressions[f]().Match(text)
	default:
		return expressions[f]().Match(text)
	}
}

func isObjectID(text []byte) bool {
	var id [12]byte
	if len(text) != hex.EncodedLen(len(id)) {
		return false
	}
	_, err := hex.Decode(id[:], text)
	return err == nil
}

// isBase64 takes the standard alphabet with padding, and no empty text.
func isBase64(text []byte) bool {
	n := len(text)
	if n == 0 || n%4 != 0 {
		return false
	}
	for range 2 {
		if text[n-1] == '=' {
			n--
		}
	}
	for _, b := range text[:n] {
		if !inBase64[b] {
			return false
		}
	}
	return true
}

var inBase64 = func() (in [256]bool) {
	for _, b := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		in[b] = true
	}
	return in
}()
