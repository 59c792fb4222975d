package compile

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// documents warns about what the documents demand beyond upstream, and about
// what upstream passes over in silence.
func (c *checker) documents(s *syntax.Schema, at place) {
	if s.Items != nil && s.Items.Schema == nil && len(s.Items.Tuple) == 0 {
		c.forbidden(itemsIgnored, s, "items", "must be a schema or a list of schemas; API servers ignore other values")
	}
	if at.structural() {
		c.intOrStringForms(s)
		if s.ItemSchema() != nil && (len(s.Properties) > 0 || s.AdditionalProperties != nil) ||
			len(s.Properties) > 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Allows && s.AdditionalProperties.Schema == nil {
			c.forbidden(oneStructure, s, "", "must have only one of properties, additionalProperties and items")
		}
	}
	if a := s.AdditionalProperties; at == inLogical && a != nil && !a.Allows {
		c.forbidden(junctorAdditionalPropertiesFalse, s, "additionalProperties", "must be undefined to be structural; the value false is ignored")
	}
	r := s.Rare()
	if r.ReadOnly && at == inLogical {
		c.forbidden(junctorReadOnly, s, "readOnly", "must be false to be structural")
	}
	for _, m := range r.Malformed {
		kind := unionMalformed
		if m.Keyword == "readOnly" {
			kind = readOnlyMalformed
		}
		c.add(kind, c.path, fault{
			kind: field.ErrorTypeForbidden, detail: m.Detail,
			offset: m.Offset, at: path{{keyword: m.Keyword}}, in: path{{keyword: m.Keyword}},
		})
	}
	for _, u := range r.Unknown {
		c.add(unknownKeyword, c.path, fault{
			kind: field.ErrorTypeForbidden, detail: "unknown keyword: API servers drop it",
			offset: u.Value.Offset, at: path{{keyword: u.Name}}, in: path{{keyword: u.Name}},
		})
	}
	for _, d := range r.Duplicates {
		where := path{{keyword: d.Name}}
		if d.In != "" {
			where = path{{keyword: d.In, key: d.Name, kind: keyed}}
		}
		c.add(duplicateKey, c.path, fault{
			kind: field.ErrorTypeDuplicate, bad: d.Name, detail: "the last one counts",
			offset: d.Offset, at: where, in: where,
		})
	}
	if r.Unions != nil {
		c.unions(s, at)
	}
}

// intOrStringForms warns about the forms of int-or-string on which the
// documents and upstream disagree.
func (c *checker) intOrStringForms(s *syntax.Schema) {
	const form = "write x-kubernetes-int-or-string: true with anyOf: [{type: integer}, {type: string}], or without any anyOf"
	if !s.IntOrString {
		if intOrString(s.AnyOf) {
			c.forbidden(intOrStringUnmarked, s, "anyOf", "type is allowed inside anyOf and allOf only with x-kubernetes-int-or-string: true")
		}
		if len(s.AllOf) > 0 && intOrString(s.AllOf[0].AnyOf) {
			c.forbidden(intOrStringUnmarked, s, "allOf", "type is allowed inside anyOf and allOf only with x-kubernetes-int-or-string: true")
		}
	}
	if intOrString(s.OneOf) || stringOrInt(s.OneOf) {
		c.forbidden(intOrStringOneOf, s, "oneOf", form)
	}
	if stringOrInt(s.AnyOf) {
		c.forbidden(intOrStringOrder, s, "anyOf", form)
	}
}

func stringOrInt(branches []*syntax.Schema) bool {
	return len(branches) == 2 && onlyType(branches[0], "string") && onlyType(branches[1], "integer")
}

const unionsKeyword = "x-kubernetes-unions"

// unions checks x-kubernetes-unions. Every finding is a warning: clusters drop
// the keyword, so a CRD with a wrong one runs today.
func (c *checker) unions(s *syntax.Schema, at place) {
	if at == inLogical {
		c.forbidden(unionInJunctor, s, unionsKeyword, "must be empty to be structural")
		return
	}
	if s.Type != "object" {
		c.wrongType(unionType, s, s.Type, "must be object if x-kubernetes-unions is specified")
	}
	unions := s.Rare().Unions
	discriminators := make(map[string]bool, len(unions))
	for i := range unions {
		discriminators[unions[i].Discriminator] = true
	}
	delete(discriminators, "")
	before := unionsBefore{members: make(map[string]bool), discriminators: make(map[string]bool)}
	for i := range unions {
		c.enterIndex(unionsKeyword, i)
		c.union(s, &unions[i], before, discriminators)
		c.leave()
	}
}

// unionsBefore is what the unions before one have taken.
type unionsBefore struct{ members, discriminators map[string]bool }

// union checks one union of s. Whatever it finds makes that the union has no
// effect: see [syntax.WellFormedUnions].
func (c *checker) union(s *syntax.Schema, u *syntax.Union, before unionsBefore, discriminators map[string]bool) {
	if len(u.Fields) == 0 {
		c.aboutUnion(unionEmpty, fault{kind: field.ErrorTypeRequired, detail: "a union must have fields"}, u.Offset)
	}
	if u.Discriminator != "" {
		c.discriminator(s, u, before)
	}
	values := make(map[string]bool, len(u.Fields))
	for _, f := range u.Fields {
		at := step{keyword: "fields", key: f.Name, kind: keyed}
		if s.Property(f.Name) == nil {
			c.aboutUnion(unionField, invalidName(f.Name, "must be the name of a property"), f.Offset, at)
		}
		if discriminators[f.Name] {
			c.aboutUnion(unionDiscriminator, invalidName(f.Name, "a discriminator must not be a member of a union"), f.Offset, at)
		}
		if before.members[f.Name] {
			c.aboutUnion(unionOverlap, fault{kind: field.ErrorTypeDuplicate, bad: f.Name, detail: "a field must not be a member of two unions"}, f.Offset, at)
		}
		before.members[f.Name] = true
		switch {
		case u.Discriminator == "" && f.Value != "":
			c.aboutUnion(unionValue, invalidName(f.Value, "must be empty if there is no discriminator"), f.Offset, at)
		case u.Discriminator != "" && f.Value == "":
			c.aboutUnion(unionValue, fault{kind: field.ErrorTypeRequired, detail: "must not be empty if there is a discriminator"}, f.Offset, at)
		case f.Value != "" && values[f.Value]:
			c.aboutUnion(unionValue, fault{kind: field.ErrorTypeDuplicate, bad: f.Value, detail: "members must have different discriminator values"}, f.Offset, at)
		}
		values[f.Value] = true
	}
}

// discriminator checks the discriminator of u.
func (c *checker) discriminator(s *syntax.Schema, u *syntax.Union, before unionsBefore) {
	d, at := u.Discriminator, step{keyword: "discriminator"}
	if before.discriminators[d] {
		c.aboutUnion(unionDiscriminator, fault{kind: field.ErrorTypeDuplicate, bad: d, detail: "two unions must not have the same discriminator"}, u.Offset, at)
	}
	before.discriminators[d] = true
	p := s.Property(d)
	if p == nil {
		c.aboutUnion(unionDiscriminator, invalidName(d, "must be the name of a property"), u.Offset, at)
		return
	}
	if p.Type != "string" {
		c.aboutUnion(unionDiscriminator, invalidName(d, "must be the name of a property of type string, not "+strconv.Quote(p.Type)), u.Offset, at)
	}
	missing, surplus := syntax.UnionEnum(p, u)
	for _, f := range missing {
		c.aboutUnion(unionValue, invalidName(f.Value, "must be in the enum of the discriminator"), f.Offset, step{keyword: "fields", key: f.Name, kind: keyed})
	}
	for _, e := range surplus {
		c.aboutUnion(unionValue, invalidName(string(e.Raw), "is in the enum of the discriminator, but no member has this value"), u.Offset, at)
	}
}

func (c *checker) aboutUnion(r checkID, x fault, offset int, at ...step) {
	x.offset, x.at, x.in = offset, at, at
	c.add(r, c.path, x)
}

func invalidName(bad, detail string) fault {
	return fault{kind: field.ErrorTypeInvalid, bad: bad, detail: detail}
}
