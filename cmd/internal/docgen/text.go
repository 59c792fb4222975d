package docgen

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// quote writes a string as JSON.
func quote(s string) string { return string(jsondoc.AppendString(nil, s)) }

// unquote reads a string that is written as JSON.
func unquote(raw string) (string, bool) {
	var s string
	if !strings.HasPrefix(raw, `"`) || json.Unmarshal([]byte(raw), &s) != nil {
		return "", false
	}
	return s, true
}

// bare writes a value for people: strings without their quotes, unless that
// could be misread.
func bare(raw string) string {
	if s, ok := unquote(raw); ok && s != "" && strings.TrimSpace(s) == s && !strings.ContainsAny(s, "\n\r\t") {
		return s
	}
	return raw
}

// bareList is bare for several values.
func bareList(list []string) string {
	out := make([]string, len(list))
	for i, raw := range list {
		out[i] = bare(raw)
	}
	return strings.Join(out, ", ")
}

// shorten cuts text that is longer than n bytes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
