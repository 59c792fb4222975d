package syntax

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Readers of the keywords that have a shape of their own.

func (p *parser) items(s *Schema, v jsondoc.Value) {
	s.Items = &Items{}
	switch p.d.Kind(v) {
	case jsondoc.Object:
		s.Items.Schema = p.schema(v)
	case jsondoc.Array:
		s.Items.Tuple = p.schemas(v)
	}
}

func (p *parser) dependencies(s *Schema, v jsondoc.Value) {
	if p.d.Kind(v) != jsondoc.Object {
		p.wrong(v, "an object of schemas or arrays of strings")
		return
	}
	list := make([]Dependency, 0, p.d.Len(v))
	p.members(v, func(key jsondoc.Value, duplicate bool) {
		dep := Dependency{Name: p.string(key), Offset: p.d.Offset(key)}
		p.duplicate(s, duplicate, "dependencies", dep.Name, dep.Offset)
		p.enter(dep.Name)
		switch p.d.Kind(key + 1) {
		case jsondoc.Object:
			dep.Schema = p.schema(key + 1)
		case jsondoc.Array:
			dep.Properties = p.texts(key + 1)
		}
		p.leave()
		list = append(list, dep)
	})
	s.newRare().Dependencies = list
}

func (p *parser) externalDocs(s *Schema, v jsondoc.Value) {
	docs := &ExternalDocs{}
	s.newRare().ExternalDocs = docs
	if p.d.Kind(v) != jsondoc.Object {
		p.wrong(v, "an object")
		return
	}
	p.members(v, func(key jsondoc.Value, _ bool) {
		switch name := string(p.d.Key(key)); name {
		case "description":
			p.textMember(&docs.Description, name, key+1)
		case "url":
			p.textMember(&docs.URL, name, key+1)
		}
	})
}

func (p *parser) textMember(dst *string, name string, v jsondoc.Value) {
	p.enter(name)
	p.text(dst, v)
	p.leave()
}

// ruleFields is the table of the members of a rule.
var ruleFields = []struct {
	name  string
	read  func(p *parser, r *Rule, v jsondoc.Value) // v is not null
	write func(dst []byte, r *Rule) []byte          // nil if there is nothing to write
}{
	{"fieldPath", func(p *parser, r *Rule, v jsondoc.Value) { p.text(&r.FieldPath, v) },
		func(dst []byte, r *Rule) []byte { return appendNonEmpty(dst, r.FieldPath) }},
	{"message", func(p *parser, r *Rule, v jsondoc.Value) { p.text(&r.Message, v) },
		func(dst []byte, r *Rule) []byte { return appendNonEmpty(dst, r.Message) }},
	{"messageExpression", func(p *parser, r *Rule, v jsondoc.Value) { p.text(&r.MessageExpression, v) },
		func(dst []byte, r *Rule) []byte { return appendNonEmpty(dst, r.MessageExpression) }},
	{"optionalOldSelf", func(p *parser, r *Rule, v jsondoc.Value) {
		r.OptionalOldSelf = new(bool)
		p.flag(r.OptionalOldSelf, v)
	}, appendOptionalOldSelf},
	{"reason", func(p *parser, r *Rule, v jsondoc.Value) {
		r.Reason = new(string)
		p.text(r.Reason, v)
	}, appendReason},
	{"rule", func(p *parser, r *Rule, v jsondoc.Value) { p.text(&r.Rule, v) },
		func(dst []byte, r *Rule) []byte { return jsondoc.AppendString(dst, r.Rule) }},
}

func (p *parser) rules(s *Schema, v jsondoc.Value) {
	if p.d.Kind(v) != jsondoc.Array {
		p.wrong(v, "an array of rules")
		return
	}
	list := make([]Rule, p.d.Len(v))
	for i, item := range p.d.Items(v) {
		p.enterItem(i)
		p.rule(&list[i], item)
		p.leave()
	}
	s.Validations = list
}

func (p *parser) rule(r *Rule, v jsondoc.Value) {
	r.Offset = p.d.Offset(v)
	switch p.d.Kind(v) {
	case jsondoc.Object:
	case jsondoc.Null:
		return
	default:
		p.wrong(v, "a rule")
		return
	}
	p.members(v, func(key jsondoc.Value, _ bool) {
		for i := range ruleFields {
			f := &ruleFields[i]
			if f.name != string(p.d.Key(key)) || p.d.Kind(key+1) == jsondoc.Null {
				continue
			}
			r.marks = append(r.marks, ruleMark{uint8(i), uint32(p.d.Offset(key + 1))})
			p.enter(f.name)
			f.read(p, r, key+1)
			p.leave()
		}
	})
}

// malformed remembers that a keyword which upstream ignores is not as the
// documents define it. It is no Problem: clusters accept such a schema.
func (p *parser) malformed(s *Schema, keyword string, v jsondoc.Value, detail string) {
	r := s.newRare()
	r.Malformed = append(r.Malformed, Malformed{keyword, detail, p.d.Offset(v)})
}

func (p *parser) readOnly(s *Schema, v jsondoc.Value) {
	switch p.d.Kind(v) {
	case jsondoc.True:
		s.newRare().ReadOnly = true
	case jsondoc.False:
	default:
		p.malformed(s, "readOnly", v, "must be a boolean")
		s.unwrite("readOnly")
	}
}

func (p *parser) unions(s *Schema, v jsondoc.Value) {
	if p.d.Kind(v) != jsondoc.Array {
		p.malformed(s, "x-kubernetes-unions", v, "must be an array")
		s.unwrite("x-kubernetes-unions")
		return
	}
	list := make([]Union, p.d.Len(v))
	for i, item := range p.d.Items(v) {
		p.union(s, &list[i], item)
	}
	s.newRare().Unions = list
}

func (p *parser) union(s *Schema, u *Union, v jsondoc.Value) {
	const keyword = "x-kubernetes-unions"
	u.Offset = p.d.Offset(v)
	if p.d.Kind(v) != jsondoc.Object {
		p.malformed(s, keyword, v, "entries must be objects")
		return
	}
	p.members(v, func(key jsondoc.Value, _ bool) {
		value := key + 1
		switch string(p.d.Key(key)) {
		case "discriminator":
			if k := p.d.Kind(value); k == jsondoc.String {
				u.Discriminator = p.string(value)
			} else if k != jsondoc.Null {
				p.malformed(s, keyword, value, "discriminator must be a string")
			}
		case "fields":
			if k := p.d.Kind(value); k != jsondoc.Object {
				if k != jsondoc.Null {
					p.malformed(s, keyword, value, "fields must be an object of strings")
				}
				return
			}
			p.members(value, func(name jsondoc.Value, _ bool) {
				f := UnionField{Name: p.string(name), Offset: p.d.Offset(name)}
				if k := p.d.Kind(name + 1); k == jsondoc.String {
					f.Value = p.string(name + 1)
				} else if k != jsondoc.Null {
					p.malformed(s, keyword, name+1, "discriminator values must be strings")
				}
				u.Fields = append(u.Fields, f)
			})
		default:
			p.malformed(s, keyword, key, "entries may have only discriminator and fields")
		}
	})
}
