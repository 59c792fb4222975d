package cli

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
)

// headline says in plain words what a finding in a CRD is about: the field as users of the
// CRD write it, and what is wrong. The server's text, with its paths through the schema and
// the values, goes below it.
func headline(f *finding.Finding) string {
	at := finding.Field(f.Pointer)
	text := f.Summary
	if text == "" {
		text = plainWords(f)
	}
	if at == "" {
		return text
	}
	return at + ": " + text
}

// plainWords is what is wrong, without the path and the value.
func plainWords(f *finding.Finding) string {
	detail := f.Detail
	switch f.Type {
	case field.ErrorTypeRequired:
		detail = join("required", detail)
	case field.ErrorTypeDuplicate:
		detail = join("duplicate", detail)
	case field.ErrorTypeNotSupported:
		detail = join("unsupported value"+shown(f.BadValue), detail)
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		detail = join("too long", detail)
	}
	if detail == "" {
		return strings.TrimPrefix(strings.TrimPrefix(f.Error(), f.Path), ": ")
	}
	return detail
}

// shown is a value that is a short text.
func shown(value any) string {
	if text, ok := value.(string); ok && text != "" && len(text) <= 30 {
		return " " + strconv.Quote(text)
	}
	return ""
}

func join(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}
