package compile

import "k8s.io/apimachinery/pkg/util/validation/field"

// located is a part of the schema that knows where its members are: a schema
// or a validation rule.
type located interface {
	At(name string) int
	Has(name string) bool
}

// report adds a finding about the member called keyword of s, or, if keyword is
// empty, about s itself. The pointer leads to s if the member is missing.
func (c *checker) report(r checkID, s located, keyword string, x fault) {
	if keyword != "" {
		x.at = path{{keyword: keyword}}
		if s.Has(keyword) {
			x.in = x.at
		}
	}
	x.offset = s.At(keyword)
	c.add(r, c.path, x)
}

func (c *checker) forbidden(r checkID, s located, keyword, detail string) {
	c.report(r, s, keyword, fault{kind: field.ErrorTypeForbidden, bad: "", detail: detail})
}

func (c *checker) required(r checkID, s located, keyword, detail string) {
	c.report(r, s, keyword, fault{kind: field.ErrorTypeRequired, bad: "", detail: detail})
}

func (c *checker) invalid(r checkID, s located, keyword string, bad any, detail string) {
	c.report(r, s, keyword, fault{kind: field.ErrorTypeInvalid, bad: bad, detail: detail})
}

func (c *checker) notSupported(r checkID, s located, keyword string, bad any, supported ...string) {
	e := field.NotSupported(nil, bad, supported)
	c.report(r, s, keyword, fault{kind: e.Type, bad: bad, detail: e.Detail})
}

// wrongType reports that the type of s is not the wanted one: missing, or
// another.
func (c *checker) wrongType(r checkID, s located, typ, detail string) {
	if typ == "" {
		c.required(r, s, "type", detail)
	} else {
		c.invalid(r, s, "type", typ, detail)
	}
}

// word is a string that upstream keeps in a type of its own, which makes field
// errors render it as JSON rather than as a Go string.
type word string
