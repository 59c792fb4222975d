package crd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	dns "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/compile"
)

// enum is a string that API servers keep in a type of its own, which makes
// errors show it as JSON rather than as a Go string.
type enum string

// spec checks the specification.
func (c *checker) spec() error {
	m, at := c.new, c.at("spec")
	if m.Group == "" {
		c.required(groupRequired, at.to("group"), "")
	} else if errs := dns.IsDNS1123Subdomain(m.Group); len(errs) > 0 {
		c.invalid(groupDomain, at.to("group"), m.Group, strings.Join(errs, ","))
	} else if !strings.Contains(m.Group, ".") {
		c.invalid(groupDomain, at.to("group"), m.Group, "should be a domain with at least one dot")
	}
	c.oneOf(scopeUnknown, at.to("scope"), m.scope, "Cluster", "Namespaced")
	c.schemasRequired(at)
	if err := c.versions(at); err != nil {
		return err
	}
	for _, n := range []struct{ field, value string }{
		{"plural", m.Plural}, {"singular", m.Singular}, {"kind", m.Kind}, {"listKind", m.ListKind},
	} {
		if n.value == "" {
			c.required(namesRequired, at.to("names", n.field), "")
		}
	}
	c.allNames(&m.Names, at.to("names"))
	c.conversion(at.to("conversion"))
	if m.PreserveUnknownFields && (c.old == nil || !c.old.PreserveUnknownFields) {
		c.invalid(preserveUnknownFields, at.to("preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead")
	}
	if c.old != nil {
		c.immutable(at)
	}
	return nil
}

// immutable checks what must not change.
func (c *checker) immutable(at spot) {
	m, old := c.new, c.old
	unchanged := func(s spot, now, before string, bad any) {
		if now != before {
			c.invalid(fieldImmutable, s, bad, "field is immutable")
		}
	}
	if !c.ratchet.names {
		unchanged(at.to("scope"), m.scope, old.scope, enum(m.scope))
		unchanged(at.to("names", "kind"), m.Kind, old.Kind, m.Kind)
	}
	unchanged(at.to("group"), m.Group, old.Group, m.Group)
	unchanged(at.to("names", "plural"), m.Plural, old.Plural, m.Plural)
}

// schemasRequired checks that versions have schemas.
func (c *checker) schemasRequired(at spot) {
	m := c.new
	if m.PreserveUnknownFields && m.anyTree(hasDefaults) {
		c.invalid(preserveWithDefaults, at.to("preserveUnknownFields"), true, "must be false in order to use defaults in the schema")
	}
	if !m.common().missing() || c.ratchet.withoutSchema && m.PreserveUnknownFields {
		return
	}
	list := at.to("versions")
	for i := range m.versions {
		v := &m.versions[i]
		switch {
		case !m.schema(v).missing():
		case !c.ratchet.withoutSchema:
			c.required(schemaRequired, list.item(i, v.at).to("schema", "openAPIV3Schema"), "")
		case v.Served:
			c.required(schemaRequired, list.item(i, v.at).to("schema", "openAPIV3Schema"), "because otherwise all fields are pruned")
		}
	}
}

// versions checks the versions, and what API servers take out of them because
// all say the same.
func (c *checker) versions(at spot) error {
	m, list := c.new, at.to("versions")
	s := c.newSchemas()
	storage, unique := 0, true
	names := make(map[string]*version, len(m.versions))
	for i := range m.versions {
		v := &m.versions[i]
		if v.Storage {
			storage++
		}
		first := names[v.Name]
		if first == nil {
			first, names[v.Name] = v, v
		} else {
			unique = false
		}
		here := list.item(i, v.at)
		if errs := dns.IsDNS1035Label(v.Name); len(errs) > 0 {
			c.invalid(versionName, here.to("name"), v.Name, strings.Join(errs, ","))
		}
		c.deprecation(v, here.to("deprecationWarning"))
		if x := m.schema(v); !x.missing() {
			status := first.Status // servers look them up by name
			if err := s.check(x, here.to("schema", "openAPIV3Schema"), status, v.Name); err != nil {
				return err
			}
		}
		if !m.same.subresources {
			c.scale(v.Scale, here.to("subresources"))
		}
		if !m.same.columns {
			c.columns(v.Columns, here.to("additionalPrinterColumns"))
		}
		if !m.same.selectable && len(v.SelectableFields) > 0 {
			c.versionSelectable(v, here)
		}
	}
	if !unique {
		c.invalid(versionNameDuplicate, list, m.dump(), "must contain unique version names")
	}
	if storage != 1 {
		c.invalid(versionsStorage, list, m.dump(), "must have exactly one version marked as storage version")
	}
	if len(m.versions) == 0 {
		return nil
	}
	return c.shared(list.item(0, m.versions[0].at), s)
}

// shared checks what all versions say alike. Servers have it directly in spec.
func (c *checker) shared(first spot, s *schemas) error {
	m := c.new
	v := &m.versions[0]
	if v.Name != "" {
		if errs := dns.IsDNS1035Label(v.Name); len(errs) > 0 {
			c.invalid(versionName, first.to("name").as("spec.version"), v.Name, strings.Join(errs, ","))
		}
	}
	if x := m.common(); !x.missing() {
		status := slices.ContainsFunc(m.versions, func(v version) bool { return v.Status })
		if err := s.check(x, first.to("schema", "openAPIV3Schema").as("spec.validation.openAPIV3Schema"), status, v.Name); err != nil {
			return err
		}
	}
	if m.same.subresources {
		c.scale(v.Scale, first.to("subresources").as("spec.subresources"))
	}
	if m.same.columns {
		c.columns(v.Columns, first.to("additionalPrinterColumns").as("spec.additionalPrinterColumns"))
	}
	if m.same.selectable && len(v.SelectableFields) > 0 {
		here := first.to("selectableFields").as("spec.selectableFields")
		if m.common() == nil {
			c.invalid(selectableFieldsSchema, here, "", "may only be set when validations.schema is included")
		} else {
			c.selectable(v.SelectableFields, m.common(), here, first.to("schema", "openAPIV3Schema").as("spec.schema.openAPIV3Schema"), "")
		}
	}
	return nil
}

func (c *checker) versionSelectable(v *version, here spot) {
	x := c.new.schema(v)
	if x.missing() {
		c.invalid(selectableFieldsSchema, here.to("selectableFields"), "", "may only be set when `version.schema.openAPIV3Schema` is not included")
		return
	}
	c.selectable(v.SelectableFields, x, here.to("selectableFields"), here.to("schema", "openAPIV3Schema"), v.Name)
}

func (c *checker) deprecation(v *version, s spot) {
	if v.DeprecationWarning == nil {
		return
	}
	text := *v.DeprecationWarning
	report := func(detail string) { c.invalid(deprecationWarning, s, v.DeprecationWarning, detail) }
	if !v.Deprecated {
		report("can only be set for deprecated versions")
		return
	}
	if len(text) > 256 {
		report("must be <= 256 characters long")
	}
	if text == "" {
		report("must not be an empty string")
	}
	for i, r := range text {
		if !unicode.IsPrint(r) {
			report("must only contain printable UTF-8 characters; non-printable character found at index " + strconv.Itoa(i))
			break
		}
	}
	if !utf8.ValidString(text) {
		report("must only contain printable UTF-8 characters")
	}
}

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

func (c *checker) columns(list []Column, at spot) {
	for i := range list {
		x := &list[i]
		s := at.item(i, x.at)
		if x.Name == "" {
			c.required(printerColumn, s.to("name"), "")
		}
		if one := "must be one of " + strings.Join(columnTypes, ","); x.Type == "" {
			c.required(printerColumn, s.to("type"), one)
		} else if !slices.Contains(columnTypes, x.Type) {
			c.invalid(printerColumn, s.to("type"), x.Type, one)
		}
		if x.Format != "" && !slices.Contains(columnFormats, x.Format) {
			c.invalid(printerColumn, s.to("format"), x.Format, "must be one of "+strings.Join(columnFormats, ","))
		}
		// Servers write the name of this field with capitals.
		if path := s.to("jsonPath").as(s.path + ".JSONPath"); x.JSONPath == "" {
			c.required(printerColumn, path, "")
		} else {
			c.simplePath(printerColumn, path, x.JSONPath)
		}
	}
}

// simplePath checks that a path begins with a dot, which is all that servers ask
// for.
func (c *checker) simplePath(r checkID, s spot, path string) bool {
	if path[0] == '.' {
		return true
	}
	c.invalid(r, s, path, "must be a simple json path starting with .")
	return false
}

// scale checks the paths of the scale subresource; s is the spot of all subresources.
func (c *checker) scale(x *Scale, s spot) {
	if x == nil {
		return
	}
	s = s.to("scale")
	for _, p := range []struct{ field, path, under string }{
		{"specReplicasPath", x.SpecReplicasPath, ".spec"}, {"statusReplicasPath", x.StatusReplicasPath, ".status"},
	} {
		if p.path == "" {
			c.required(scalePath, s.to(p.field), "")
		} else if c.simplePath(scalePath, s.to(p.field), p.path) && !strings.HasPrefix(p.path, p.under+".") {
			c.invalid(scalePath, s.to(p.field), p.path, "should be a json path under "+p.under)
		}
	}
	if p := x.LabelSelectorPath; p != nil && *p != "" && c.simplePath(scalePath, s.to("labelSelectorPath"), *p) &&
		!strings.HasPrefix(*p, ".spec.") && !strings.HasPrefix(*p, ".status.") {
		c.invalid(scalePath, s.to("labelSelectorPath"), p, "should be a json path under either .spec or .status")
	}
}

// maxSelectable is how many selectable fields a version may have.
const maxSelectable = 8

// selectable checks the selectable fields of a schema. inSchema is where servers
// report that they cannot make sense of it.
func (c *checker) selectable(list []SelectableField, x *validation, at, inSchema spot, version string) {
	tree := x.tree
	if tree != nil {
		if problem := compile.ConversionProblem(tree); problem != "" {
			c.invalid(selectableFieldsSchema, inSchema, "", problem)
			tree = nil // servers then follow a null pointer
		}
	}
	found := map[string]bool{}
	for i := range list {
		f := &list[i]
		s := at.item(i, f.at).to("jsonPath")
		if f.JSONPath == "" {
			c.required(selectableField, s, "")
			continue
		}
		path, schema, err := compile.FollowPath(tree, f.JSONPath, false)
		if err == nil && path == nil {
			err = errors.New("is too long") // here too
		}
		if err != nil {
			c.invalid(selectableField, s, f.JSONPath, "is an invalid path: "+err.Error())
			continue
		}
		if path.Root().String() == "metadata" {
			c.invalid(selectableField, s, f.JSONPath, "must not point to fields in metadata")
		}
		if schema == nil || schema.Type != "string" && schema.Type != "boolean" && schema.Type != "integer" {
			c.invalid(selectableField, s, f.JSONPath, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.")
		}
		name := path.String()
		if found[name] {
			c.add(selectableField, s, field.ErrorTypeDuplicate, f.JSONPath, "")
		}
		found[name] = true
	}
	if n := len(found); n > maxSelectable && !c.ratchet.tooManyFields[version] {
		c.add(selectableFieldsTooMany, at, field.ErrorTypeTooMany, n, fmt.Sprintf("must have at most %d items", maxSelectable))
	}
}
