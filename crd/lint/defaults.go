package lint

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// shape is what defaults make of an object that is written as {}.
type shape struct {
	defaulted []string // fields that are filled in
	open      bool     // there are fields that are not
	needs     bool     // required fields stay missing, or something else demands fields
}

// add notes a property of the object.
func (sh *shape) add(child *node, below shape) {
	switch s := child.schema; {
	case s.Default != nil && string(s.Default.Raw) == `""`:
		// It says no more than that the field is optional.
	case s.Default != nil:
		sh.defaulted = append(sh.defaulted, child.name)
	case child.required:
		sh.needs = true
	case len(below.defaulted) > 0 && !below.open && !below.needs:
		// An object that could be filled in, too, if it had a default.
	default:
		sh.open = true
	}
}

// complete notes what else the schema of the object demands.
func (sh *shape) complete(s *syntax.Schema) {
	if len(s.Properties) == 0 || s.MinProperties != nil || len(s.OneOf) > 0 || len(s.AnyOf) > 0 || len(s.AllOf) > 0 || s.Not != nil ||
		len(s.Rare().Unions) > 0 || s.AdditionalProperties != nil || s.PreserveUnknownFields != nil {
		sh.open = true
	}
}

// defaults looks at the default of a field, or at the lack of one.
func (c *checker) defaults(n *node, sh *shape) {
	if n.keyword != "properties" {
		return
	}
	s := n.schema
	if s.Default != nil {
		if n.required {
			c.at("default-required", n, "default", fmt.Sprintf("%s is required and has a default: the API server fills in the default before it validates, so omitting the field is never an error", n.name),
				fmt.Sprintf("Remove %s from required, or remove the default.", n.name))
		}
		if s.Nullable && string(s.Default.Raw) != "null" {
			c.at("default-nullable", n, "default", fmt.Sprintf("%s is nullable: null stays null, and the API server fills in %s only if the field is absent", n.name, short(string(s.Default.Raw))),
				"Remove nullable unless null has a meaning of its own. The API server then replaces null with the default.")
		}
		return
	}
	if n.required || len(sh.defaulted) == 0 || s.Nullable || n.chosen() || n.inStatus() {
		return
	}
	fields := strings.Join(sh.defaulted[:min(len(sh.defaulted), 3)], ", ")
	if more := len(sh.defaulted) - 3; more > 0 {
		fields += fmt.Sprintf(" and %d more", more)
	}
	if sh.open || sh.needs {
		c.at("default-conditional", n, "", fmt.Sprintf("%s is optional: if it is absent, the API server does not fill in the defaults of %s", n.name, fields),
			fmt.Sprintf("If the defaults should always apply, give %s a default.", n.name))
		return
	}
	found := c.at("default-unreachable", n, "", fmt.Sprintf("%s is optional and all its fields have defaults, but if %[1]s is absent, the API server fills in none of them: %s", n.name, fields),
		fmt.Sprintf("Give %s a default.", n.name))
	c.propose(found, fmt.Sprintf("default: {} # objects without %s get it then, with the defaults of its fields", plain(n.name)), insertInto(s.Offset, `"default":{},`))
}

// inStatus reports whether n is written by controllers, who need no defaults.
func (n *node) inStatus() bool {
	for ; n.parent != nil; n = n.parent {
		if n.parent.parent == nil && n.name == "status" {
			return true
		}
	}
	return false
}

// chosen reports whether another field says whether n is there: an enum beside
// it has its name as a value.
func (n *node) chosen() bool {
	if n.keyword != "properties" {
		return false
	}
	if n.parent.choices == nil {
		n.parent.choices = map[string]bool{}
		for _, p := range n.parent.schema.Properties {
			if p.Schema.Type != "string" {
				continue
			}
			for _, v := range p.Schema.Enum {
				n.parent.choices[strings.ToLower(strings.Trim(string(v.Raw), `"`))] = true
			}
		}
	}
	return n.parent.choices[strings.ToLower(n.name)]
}

// short cuts a text that is quoted in another.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	r := []rune(s[:most])
	return string(r[:len(r)-1]) + "…"
}
