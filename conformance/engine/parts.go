package engine

import (
	"github.com/espalier-dev/espalier/internal/format"
	"github.com/espalier-dev/espalier/internal/pattern"
)

// Format reports whether a text has a format. The formats and patterns of schemas run this code; asked alone they can be
// compared for millions of texts.
func Format(name, text string) bool { return format.Lookup(name).Match([]byte(text)) }

// Pattern compiles a pattern and returns what reports whether a text contains a match.
func Pattern(expression string) (func(text string) bool, error) {
	p, err := pattern.Compile(expression)
	if err != nil {
		return nil, err
	}
	return func(text string) bool { return p.Match([]byte(text)) }, nil
}
