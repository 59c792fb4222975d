package syntax

import (
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// AppendJSON appends the schema as canonical JSON: sorted keys, and only the
// keywords that are written, the unknown ones included. A nil schema is null.
func (s *Schema) AppendJSON(dst []byte) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	first := true
	key := func(name string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsondoc.AppendString(dst, name), ':')
	}
	unknown := s.Rare().Unknown // sorted, as Parse reads members by name
	for i := range keywords {
		k := &keywords[i]
		for len(unknown) > 0 && unknown[0].Name < k.name {
			key(unknown[0].Name)
			dst = append(dst, unknown[0].Value.Raw...)
			unknown = unknown[1:]
		}
		if s.written&(1<<i) != 0 {
			key(k.name)
			dst = k.write(dst, s)
		}
	}
	for _, u := range unknown {
		key(u.Name)
		dst = append(dst, u.Value.Raw...)
	}
	return append(dst, '}')
}

func appendList[T any](dst []byte, list []T, item func([]byte, T) []byte) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, x := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item(dst, x)
	}
	return append(dst, ']')
}

func appendTexts(dst []byte, list []string) []byte {
	return appendList(dst, list, jsondoc.AppendString[string])
}

func appendSchemas(dst []byte, list []*Schema) []byte {
	return appendList(dst, list, func(dst []byte, s *Schema) []byte { return s.AppendJSON(dst) })
}

// appendMap appends a list of named values as an object; name and value say
// what each consists of.
func appendMap[T any](dst []byte, list []T, name func(T) string, value func([]byte, T) []byte) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	for i, m := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsondoc.AppendString(dst, name(m)), ':')
		dst = value(dst, m)
	}
	return append(dst, '}')
}

func appendItems(dst []byte, s *Schema) []byte {
	if s.Items.Tuple != nil {
		return appendSchemas(dst, s.Items.Tuple)
	}
	return s.Items.Schema.AppendJSON(dst)
}

func appendDependencies(dst []byte, s *Schema) []byte {
	return appendMap(dst, s.Rare().Dependencies,
		func(d Dependency) string { return d.Name },
		func(dst []byte, d Dependency) []byte {
			if d.Schema == nil {
				return appendTexts(dst, d.Properties)
			}
			return d.Schema.AppendJSON(dst)
		})
}

func appendExternalDocs(dst []byte, s *Schema) []byte {
	docs := s.Rare().ExternalDocs
	dst = append(dst, '{')
	if docs.Description != "" {
		dst = jsondoc.AppendString(append(dst, `"description":`...), docs.Description)
	}
	if docs.URL != "" {
		if docs.Description != "" {
			dst = append(dst, ',')
		}
		dst = jsondoc.AppendString(append(dst, `"url":`...), docs.URL)
	}
	return append(dst, '}')
}

func appendUnions(dst []byte, s *Schema) []byte {
	return appendList(dst, s.Rare().Unions, func(dst []byte, u Union) []byte {
		dst = append(dst, '{')
		if u.Discriminator != "" {
			dst = jsondoc.AppendString(append(dst, `"discriminator":`...), u.Discriminator)
		}
		if u.Fields != nil {
			if u.Discriminator != "" {
				dst = append(dst, ',')
			}
			dst = appendMap(append(dst, `"fields":`...), u.Fields,
				func(f UnionField) string { return f.Name },
				func(dst []byte, f UnionField) []byte { return jsondoc.AppendString(dst, f.Value) })
		}
		return append(dst, '}')
	})
}

func appendRules(dst []byte, s *Schema) []byte {
	return appendList(dst, s.Validations, func(dst []byte, r Rule) []byte {
		dst = append(dst, '{')
		first := true
		for i := range ruleFields {
			f := &ruleFields[i]
			mark := len(dst)
			if !first {
				dst = append(dst, ',')
			}
			dst = append(jsondoc.AppendString(dst, f.name), ':')
			before := len(dst)
			if dst = f.write(dst, &r); len(dst) == before {
				dst = dst[:mark]
				continue
			}
			first = false
		}
		return append(dst, '}')
	})
}

func appendNonEmpty(dst []byte, s string) []byte {
	if s == "" {
		return dst
	}
	return jsondoc.AppendString(dst, s)
}

func appendOptionalOldSelf(dst []byte, r *Rule) []byte {
	if r.OptionalOldSelf == nil {
		return dst
	}
	return strconv.AppendBool(dst, *r.OptionalOldSelf)
}

func appendReason(dst []byte, r *Rule) []byte {
	if r.Reason == nil {
		return dst
	}
	return jsondoc.AppendString(dst, *r.Reason)
}
