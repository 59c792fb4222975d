package oracle

import (
	"regexp"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Format reports whether a text has a format.
func Format(name, text string) bool { return strfmt.Default.Validates(name, text) }

// Pattern compiles a pattern and returns what reports whether a text contains a match.
func Pattern(expression string) (func(text string) bool, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}
