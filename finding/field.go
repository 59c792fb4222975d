package finding

import (
	"slices"
	"strconv"
	"strings"
)

// Field turns a pointer into a CRD into the field that it is about: below a schema the path
// in objects, as in spec.hosts[].name, then the keyword.
func Field(pointer string) string {
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
