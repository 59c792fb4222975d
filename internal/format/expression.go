package format

import (
	"sync"

	"github.com/espalier-dev/espalier/internal/pattern"
)

// expressions are the formats that a regular expression defines, or that need
// one besides a length. They are compiled when they are first used.
var expressions = [count]func() *pattern.Pattern{
	// A single label may have one dash, as its second character. Of several
	// labels, the last is letters only. isHostname limits the bytes of labels,
	// and thereby the runes, which upstream's expression counts.
	hostname: lazily(`^(?:[0-9\p{S}\p{L}]-?[0-9\p{S}\p{L}]*` +
		`|(?:[0-9\p{S}\p{L}](?:[-0-9\p{S}\p{L}]*[0-9\p{S}\p{L}])?\.)+\p{L}{2,})$`),
	uuid:         lazily(`(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$`),
	uuid3:        lazily(`(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$`),
	uuid4:        lazily(`(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$`),
	uuid5:        lazily(`(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$`),
	ssn:          lazily(`^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$`),
	hexColor:     lazily(`^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`),
	rgbColor:     lazily(`^rgb\(\s*` + rgbValue + `\s*,\s*` + rgbValue + `\s*,\s*` + rgbValue + `\s*\)$`),
	k8sShortName: lazily(`^` + nameLabel + `$`),
	k8sLongName:  lazily(`^` + nameLabel + `(\.` + nameLabel + `)*$`),

	// Not the whole format, see isURI and isEmail.
	uri: lazily(`^(?:[a-zA-Z][-+.a-zA-Z0-9]*://[-.a-zA-Z0-9]+(?::[0-9]+)?(?:/` + plainPath + `)?|/` + plainPath + `)` +
		`(?:\?[^\x00-\x1f\x7f]*)?$`),
	email: lazily(`^[a-zA-Z0-9]+(?:[-+._]?[a-zA-Z0-9]+)*@[a-zA-Z0-9]+(?:[-.]?[a-zA-Z0-9]+)*$`),
}

const (
	rgbValue  = `(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])`
	nameLabel = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	plainPath = `[^\x00-\x1f\x7f%?]*`
)

func lazily(expr string) func() *pattern.Pattern {
	return sync.OnceValue(func() *pattern.Pattern {
		p, err := pattern.Compile(expr)
		if err != nil {
			panic(err) // a test compiles them all
		}
		return p
	})
}
