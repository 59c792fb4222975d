package cli

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
)

// headline says in plain words what a finding in a CRD is about: the field as users of the
// CRD write it, and what is wrong. The server's text, with its paths through the schema and
// the values, goes below it.
func headline(f *finding.Finding) string {
	at := fieldOf(f.Pointer)
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

// fieldOf turns a pointer into a CRD into the field that it is about: below a schema the path
// in objects, then the keyword.
func fieldOf(pointer string) string {
	if pointer == "" {
		return ""
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	if i := slices.Index(tokens, "openAPIV3Schema"); i >= 0 {
		return inSchema(tokens[i+1:])
	}
	return strings.Join(tokens, ".")
}

// inSchema follows the keywords of a schema.
func inSchema(tokens []string) string {
	var path strings.Builder
	for i := 0; i < len(tokens); i++ {
		last := i+1 == len(tokens)
		switch t := tokens[i]; {
		case t == "properties" && !last:
			i++
			if path.Len() > 0 {
				path.WriteByte('.')
			}
			path.WriteString(tokens[i])
		case t == "items" && !last, t == "items" && path.Len() > 0:
			path.WriteString("[]")
		case t == "additionalProperties" && (!last || path.Len() > 0):
			path.WriteString("[*]")
		case t == "x-kubernetes-validations" && !last:
			i++
			return spaced(path.String(), "rule "+ordinal(tokens[i]))
		default:
			return spaced(path.String(), strings.Join(tokens[i:], "."))
		}
	}
	return path.String()
}

// ordinal counts rules from 1, as people do.
func ordinal(index string) string {
	n, err := strconv.Atoi(index)
	if err != nil {
		return index
	}
	return strconv.Itoa(n + 1)
}

func spaced(a, b string) string { return strings.TrimSpace(a + " " + b) }
