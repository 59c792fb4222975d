package answer

import (
	"regexp"
	"strings"
)

var (
	indices  = regexp.MustCompile(`\[[^\]]*\]`)
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	numbers  = regexp.MustCompile(`\b-?[0-9]+(?:\.[0-9]+)?\b`)
	plainKey = regexp.MustCompile(`^[A-Za-z0-9$_:]+$`)
)

// maxRule bounds the text of a rule.
const maxRule = 220

// field returns a path without indices and keys of maps.
func field(path string) string { return indices.ReplaceAllString(path, "[]") }

// signature returns a message without its values.
func signature(message string) string {
	for _, prefix := range []string{"Invalid value: ", "Unsupported value: ", "Duplicate value: ", "Not found: "} {
		if rest, ok := strings.CutPrefix(message, prefix); ok {
			message = prefix + "…" + rest[valueEnd(rest):]
			break
		}
	}
	message = quoted.ReplaceAllString(message, `"…"`)
	message = numbers.ReplaceAllString(message, "N")
	if len(message) > maxRule {
		message = message[:maxRule] + "…"
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(message, "?")), " ")
}

// valueEnd returns where the value at the beginning of a message ends: a quoted text, an object or list, or a word.
func valueEnd(text string) int {
	if m := quoted.FindStringIndex(text); m != nil && m[0] == 0 {
		return m[1]
	}
	if text == "" || text[0] != '{' && text[0] != '[' {
		if i := strings.Index(text, ": "); i >= 0 {
			return i
		}
		return len(text)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if m := quoted.FindStringIndex(text[i:]); m != nil && m[0] == 0 {
				i += m[1] - 1
			}
		}
	}
	return len(text)
}

// refusal returns the rules that a refusal names: one for each cause.
func refusal(a *Answer, text func(string) string) []string {
	reason, message, causes := a.Status()
	var out []string
	for _, c := range causes {
		out = append(out, c.Type+" "+field(c.Field)+": "+signature(text(c.Message)))
		if len(out) == 10 {
			break
		}
	}
	if len(out) == 0 {
		out = append(out, reason+": "+signature(text(message)))
	}
	return out
}
