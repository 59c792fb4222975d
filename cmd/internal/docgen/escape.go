package docgen

import (
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/internal/markdown"
)

// inlineEscaper takes the meaning from what Markdown would take for markup. Code
// and addresses are spans of their own and do not pass through it.
var inlineEscaper = strings.NewReplacer(
	`\`, `\\`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`,
	"`", "\\`", "#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`, "\n", " ", "\r", " ",
)

// inline is text in which nothing is markup, on one line.
func inline(s string) string { return inlineEscaper.Replace(s) }

func spansText(list []span) string {
	var b strings.Builder
	for _, s := range list {
		switch {
		case s.Code:
			b.WriteString(markdown.Code(s.Text))
		case s.URL == s.Text && s.URL != "":
			b.WriteString("<" + s.URL + ">")
		case s.URL != "":
			b.WriteString("[" + inline(s.Text) + "](" + s.URL + ")")
		default:
			b.WriteString(inline(s.Text))
		}
	}
	return b.String()
}

// cell is a description for a cell of a table, which has no lines of its own.
func cell(s string) string {
	var parts []string
	for _, block := range prose(s) {
		if block.Code != "" {
			for line := range strings.Lines(block.Code) {
				parts = append(parts, codeCell(strings.TrimRight(line, "\r\n")))
			}
			continue
		}
		for _, item := range block.Items {
			text := strings.ReplaceAll(spansText(item), "|", `\|`)
			text = strings.ReplaceAll(text, `\\|`, `\|`)
			if block.List {
				text = "• " + text
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "<br>")
}

// codeCell is code in a cell of a table, where the bar has to be escaped even
// within code.
func codeCell(s string) string { return strings.ReplaceAll(markdown.Code(s), "|", `\|`) }

// slug is the name that GitHub gives to the link to a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
