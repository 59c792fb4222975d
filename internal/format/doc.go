// Package format knows the string formats of schemas: their names, and which
// strings have them.
//
// # Semantics
//
// Upstream asks k8s.io/kube-openapi/pkg/validation/strfmt, whose oddities are
// part of what clients rely on. The results here are the same for every
// string; FuzzFormat compares them. To name a few oddities: ipv4 accepts an
// IPv6 address that ends in an IPv4 one, and leading zeros, while ipv6 does
// not; date-time ignores what follows a second "t"; duration accepts any text
// with a number and a unit somewhere in it, "about 3 days", say; hostname
// accepts emoji; byte rejects the empty string.
//
// strfmt matches strings with regular expressions and library parsers, behind
// a lock that the process shares. Here, most formats are read from the bytes by
// small scanners or by package pattern, without allocations and without locks.
//
// # What allocates
//
// Some formats are defined by the parsers of the standard library, and these take
// a string:
//
//   - mac: always.
//   - uri, email: unless the text is of the plain form that most have.
//   - duration: texts that contain no number with a unit, "0" for example.
package format
