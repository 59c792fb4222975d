package openapi

import (
	"strings"

	"github.com/espalier-dev/espalier/internal/markdown"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// foreign are the formats that mean something else to others than to a server,
// and what they mean to it.
var foreign = map[string]string{
	"duration": "A duration such as 1h30m.",
	"uuid":     "A UUID, with or without hyphens.",
	"uuid3":    "A UUID of version 3, with or without hyphens.",
	"uuid4":    "A UUID of version 4, with or without hyphens.",
	"uuid5":    "A UUID of version 5, with or without hyphens.",
}

// describe writes the description and, below it, what JSON Schema has no words
// for. If that is something that looks better with marks, VS Code gets it so.
func (w *writer) describe(s *syntax.Schema) {
	var plain, marked strings.Builder
	write := func(text, markup string) {
		plain.WriteString(text)
		marked.WriteString(markup)
	}
	paragraph := func(text, markup string) {
		if plain.Len() > 0 {
			write("\n\n", "\n\n")
		}
		write(text, markup)
	}
	write(s.Description, s.Description)
	if text := foreign[s.Format]; text != "" {
		paragraph(text, text)
	}
	if docs := s.Rare().ExternalDocs; docs != nil && docs.URL != "" {
		paragraph("See "+docs.URL, "See <"+docs.URL+">")
	}
	for i, r := range s.Validations {
		if i == 0 {
			paragraph("Rules:", "**Rules**\n")
		}
		item := "\n- "
		if r.Message != "" {
			item += r.Message + ": "
		}
		write(item+oneLine(r.Rule), item+markdown.Code(r.Rule))
	}
	w.optional("description", plain.String())
	if plain.Len() != marked.Len() {
		w.text("markdownDescription", marked.String())
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
