package syntax

import (
	"encoding/json"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// keyword is how a member of a schema object is read from a document and
// written back.
type keyword struct {
	name  string
	read  func(p *parser, s *Schema, v jsondoc.Value) // v is not null
	write func(dst []byte, s *Schema) []byte
}

// keywords is the table of all keywords, sorted by name. It is filled by init
// because reading one keyword may read schemas, which need the table.
var (
	keywords []keyword
	byName   map[string]uint8
)

func init() {
	keywords = []keyword{
		optionalText("$ref", func(s *Schema) **string { return &s.newRare().Ref }),
		text("$schema", func(s *Schema) *string { return &s.newRare().SchemaURL }),
		schemaOrBool("additionalItems", func(s *Schema) **SchemaOrBool { return &s.newRare().AdditionalItems }),
		schemaOrBool("additionalProperties", func(s *Schema) **SchemaOrBool { return &s.AdditionalProperties }),
		schemas("allOf", func(s *Schema) *[]*Schema { return &s.AllOf }),
		schemas("anyOf", func(s *Schema) *[]*Schema { return &s.AnyOf }),
		value("default", func(s *Schema) **JSON { return &s.Default }),
		properties("definitions", func(s *Schema) *[]Property { return &s.newRare().Definitions }),
		{"dependencies", (*parser).dependencies, appendDependencies},
		text("description", func(s *Schema) *string { return &s.Description }),
		values("enum", func(s *Schema) *[]JSON { return &s.Enum }),
		value("example", func(s *Schema) **JSON { return &s.newRare().Example }),
		flag("exclusiveMaximum", func(s *Schema) *bool { return &s.ExclusiveMaximum }),
		flag("exclusiveMinimum", func(s *Schema) *bool { return &s.ExclusiveMinimum }),
		{"externalDocs", (*parser).externalDocs, appendExternalDocs},
		text("format", func(s *Schema) *string { return &s.Format }),
		text("id", func(s *Schema) *string { return &s.newRare().ID }),
		{"items", (*parser).items, appendItems},
		integer("maxItems", func(s *Schema) **int64 { return &s.MaxItems }),
		integer("maxLength", func(s *Schema) **int64 { return &s.MaxLength }),
		integer("maxProperties", func(s *Schema) **int64 { return &s.MaxProperties }),
		number("maximum", func(s *Schema) **float64 { return &s.Maximum }),
		integer("minItems", func(s *Schema) **int64 { return &s.MinItems }),
		integer("minLength", func(s *Schema) **int64 { return &s.MinLength }),
		integer("minProperties", func(s *Schema) **int64 { return &s.MinProperties }),
		number("minimum", func(s *Schema) **float64 { return &s.Minimum }),
		number("multipleOf", func(s *Schema) **float64 { return &s.MultipleOf }),
		schema("not", func(s *Schema) **Schema { return &s.Not }),
		flag("nullable", func(s *Schema) *bool { return &s.Nullable }),
		schemas("oneOf", func(s *Schema) *[]*Schema { return &s.OneOf }),
		text("pattern", func(s *Schema) *string { return &s.Pattern }),
		properties("patternProperties", func(s *Schema) *[]Property { return &s.newRare().PatternProperties }),
		properties("properties", func(s *Schema) *[]Property { return &s.Properties }),
		{"readOnly", (*parser).readOnly, func(dst []byte, s *Schema) []byte { return strconv.AppendBool(dst, s.Rare().ReadOnly) }},
		texts("required", func(s *Schema) *[]string { return &s.Required }),
		text("title", func(s *Schema) *string { return &s.newRare().Title }),
		text("type", func(s *Schema) *string { return &s.Type }),
		flag("uniqueItems", func(s *Schema) *bool { return &s.UniqueItems }),
		flag("x-kubernetes-embedded-resource", func(s *Schema) *bool { return &s.EmbeddedResource }),
		flag("x-kubernetes-int-or-string", func(s *Schema) *bool { return &s.IntOrString }),
		texts("x-kubernetes-list-map-keys", func(s *Schema) *[]string { return &s.ListMapKeys }),
		optionalText("x-kubernetes-list-type", func(s *Schema) **string { return &s.ListType }),
		optionalText("x-kubernetes-map-type", func(s *Schema) **string { return &s.MapType }),
		optionalFlag("x-kubernetes-preserve-unknown-fields", func(s *Schema) **bool { return &s.PreserveUnknownFields }),
		{"x-kubernetes-unions", (*parser).unions, appendUnions},
		{"x-kubernetes-validations", (*parser).rules, appendRules},
	}
	byName = make(map[string]uint8, len(keywords))
	for i, k := range keywords {
		byName[k.name] = uint8(i)
		byLength[len(k.name)] = append(byLength[len(k.name)], uint8(i))
	}
}

// byLength has the keywords by the lengths of their names. Only a handful have the
// same length, and comparing these is faster than hashing.
var byLength [longestKeyword + 1][]uint8

const longestKeyword = len("x-kubernetes-preserve-unknown-fields")

func lookup(name []byte) (uint8, bool) {
	if len(name) > longestKeyword {
		return 0, false
	}
	for _, k := range byLength[len(name)] {
		if keywords[k].name == string(name) {
			return k, true
		}
	}
	return 0, false
}

// Keywords returns the names of all known keywords, sorted.
func Keywords() []string {
	names := make([]string, len(keywords))
	for i, k := range keywords {
		names[i] = k.name
	}
	return names
}

// The functions below make table entries, one for each kind of value that a
// keyword can have; at finds the keyword's field in a schema.

func text(name string, at func(*Schema) *string) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) { p.text(at(s), v) },
		func(dst []byte, s *Schema) []byte { return jsondoc.AppendString(dst, *at(s)) },
	}
}

func optionalText(name string, at func(*Schema) **string) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			*at(s) = new(string)
			p.text(*at(s), v)
		},
		func(dst []byte, s *Schema) []byte { return jsondoc.AppendString(dst, **at(s)) },
	}
}

func flag(name string, at func(*Schema) *bool) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) { p.flag(at(s), v) },
		func(dst []byte, s *Schema) []byte { return strconv.AppendBool(dst, *at(s)) },
	}
}

func optionalFlag(name string, at func(*Schema) **bool) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			*at(s) = new(bool)
			p.flag(*at(s), v)
		},
		func(dst []byte, s *Schema) []byte { return strconv.AppendBool(dst, **at(s)) },
	}
}

func number(name string, at func(*Schema) **float64) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			if p.d.Kind(v) != jsondoc.Number {
				p.wrong(v, "a number")
				return
			}
			f := p.d.Float64(v)
			*at(s) = &f
		},
		func(dst []byte, s *Schema) []byte { return appendFloat(dst, *at(s)) },
	}
}

func integer(name string, at func(*Schema) **int64) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			if p.d.Kind(v) != jsondoc.Number {
				p.wrong(v, "an integer")
				return
			}
			n, ok := p.d.Int64(v)
			if !ok {
				p.problem(v, "must be an integer of 64 bits without fraction or exponent")
				return
			}
			*at(s) = &n
		},
		func(dst []byte, s *Schema) []byte { return appendInt(dst, *at(s)) },
	}
}

func texts(name string, at func(*Schema) *[]string) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) { *at(s) = p.texts(v) },
		func(dst []byte, s *Schema) []byte { return appendTexts(dst, *at(s)) },
	}
}

func value(name string, at func(*Schema) **JSON) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			j := p.value(v)
			*at(s) = &j
		},
		func(dst []byte, s *Schema) []byte { return append(dst, (*at(s)).Raw...) },
	}
}

func values(name string, at func(*Schema) *[]JSON) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			if p.d.Kind(v) != jsondoc.Array {
				p.wrong(v, "an array")
				return
			}
			list := make([]JSON, 0, p.d.Len(v))
			for _, item := range p.d.Items(v) {
				list = append(list, p.value(item))
			}
			*at(s) = list
		},
		func(dst []byte, s *Schema) []byte {
			return appendList(dst, *at(s), func(dst []byte, j JSON) []byte { return append(dst, j.Raw...) })
		},
	}
}

func schema(name string, at func(*Schema) **Schema) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) { *at(s) = p.schema(v) },
		func(dst []byte, s *Schema) []byte { return (*at(s)).AppendJSON(dst) },
	}
}

func schemas(name string, at func(*Schema) *[]*Schema) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) { *at(s) = p.schemas(v) },
		func(dst []byte, s *Schema) []byte { return appendSchemas(dst, *at(s)) },
	}
}

func properties(name string, at func(*Schema) *[]Property) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) { *at(s) = p.properties(s, name, v) },
		func(dst []byte, s *Schema) []byte {
			return appendMap(dst, *at(s),
				func(m Property) string { return m.Name },
				func(dst []byte, m Property) []byte { return m.Schema.AppendJSON(dst) })
		},
	}
}

func schemaOrBool(name string, at func(*Schema) **SchemaOrBool) keyword {
	return keyword{name,
		func(p *parser, s *Schema, v jsondoc.Value) {
			x := &SchemaOrBool{}
			switch p.d.Kind(v) {
			case jsondoc.Object:
				x.Allows, x.Schema = true, p.schema(v)
			case jsondoc.True:
				x.Allows = true
			case jsondoc.False:
			default:
				p.wrong(v, "a schema or a boolean")
			}
			*at(s) = x
		},
		func(dst []byte, s *Schema) []byte {
			if x := *at(s); x.Schema == nil {
				return strconv.AppendBool(dst, x.Allows)
			}
			return (*at(s)).Schema.AppendJSON(dst)
		},
	}
}

// appendFloat and appendInt write null for what was a Problem.

func appendFloat(dst []byte, f *float64) []byte {
	b, err := json.Marshal(f) // for its choice between digits and exponents
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}

func appendInt(dst []byte, n *int64) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *n, 10)
}
