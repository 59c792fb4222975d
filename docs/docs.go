package docs

import (
	"embed"
	"strings"

	"github.com/espalier-dev/espalier/finding"
)

//go:embed checks/*.md
var pages embed.FS

// Page returns the page of a check, or an empty string if there is none.
func Page(id finding.ID) string {
	text, err := pages.ReadFile("checks/" + string(id) + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}

// Fix returns the first paragraph of the section How to fix on the page of a
// check, on one line.
func Fix(id finding.ID) string {
	_, after, ok := strings.Cut(Page(id), "\n## How to fix\n")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(after), "\n\n")
	return strings.Join(strings.Fields(first), " ")
}
