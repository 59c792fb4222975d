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
	plain.WriteString(s.Description)
	marked.WriteString(s.Description)
	if text := foreign[s.Format]; text != "" {
		separate(&plain)
		plain.WriteString(text)
		separate(&marked)
		marked.WriteString(text)
	}
	if docs := s.Rare().ExternalDocs; docs != nil && docs.URL != "" {
		separate(&plain)
		plain.WriteString("See " + docs.URL)
		separate(&marked)
		marked.WriteString("See <" + docs.URL + ">")
	}
	for i, r := range s.Validations {
		if i == 0 {
			separate(&plain)
			plain.WriteString("Rules:")
			separate(&marked)
			marked.WriteString("**Rules**\n")
		}
		plain.WriteString("\n- ")
		marked.WriteString("\n- ")
		if r.Message != "" {
			plain.WriteString(r.Message + ": ")
			marked.WriteString(r.Message + ": ")
		}
		plain.WriteString(oneLine(r.Rule))
		marked.WriteString(markdown.Code(r.Rule))
	}
	w.optional("description", plain.String())
	if plain.Len() != marked.Len() {
		w.text("markdownDescription", marked.String())
	}
}

// separate begins a paragraph.
func separate(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
