package crd

import (
	"encoding/json"

	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// schemas checks the schemas of a CRD.
type schemas struct {
	*checker
	nonStructural bool
	clean         map[checked]bool // what nothing was found in
}

// checked is a schema and what the outcome of its check depends on, the path of
// findings aside.
type checked struct {
	tree              *syntax.Schema
	status, unlimited bool
}

func (c *checker) newSchemas() *schemas {
	m := c.new
	return &schemas{
		checker:       c,
		nonStructural: c.ratchet.nonStructural && m.PreserveUnknownFields && !m.anyTree(hasDefaults) && !m.anyTree(hasExtensions),
		clean:         map[checked]bool{},
	}
}

// check checks the schema x of a version, which is at s.
func (c *schemas) check(x *validation, s spot, status bool, version string) error {
	key := checked{x.tree, status, c.ratchet.unchangedSchema[version]}
	if c.clean[key] {
		return nil
	}
	found, err := examine(c.crd.JSON, x.tree,
		compile.CheckOptions{StatusSubresource: status, NonStructural: c.nonStructural, Strict: c.o.Strict, Tolerance: c.ratchet.tolerance, FormatsBefore134: before134(c.o.CompatibilityVersion)},
		cel.CheckOptions{Path: s.path, CompatibilityVersion: c.o.CompatibilityVersion, Stored: c.ratchet.stored, Unlimited: key.unlimited})
	if err != nil {
		return err
	}
	c.clean[key] = len(found) == 0
	for _, f := range found {
		if f.Severity == finding.Warning && c.ratchet.warned[f.Detail] {
			continue
		}
		if f.Pointer == "" {
			f.Offset = max(f.Offset, x.tree.Offset) // about the schema as a whole
		}
		f.Pointer = s.pointer + f.Pointer
		f.Offset += x.shift
		c.found = append(c.found, f)
	}
	return nil
}

// versionsDump is the list of versions as a bad value. Servers show their own
// types, under the names that fields have in Go.
type versionsDump struct {
	list []versionDump
	size int
}

// MarshalJSON implements json.Marshaler.
func (d *versionsDump) MarshalJSON() ([]byte, error) { return json.Marshal(d.list) }

type versionDump struct {
	Name                     string
	Served                   bool
	Storage                  bool
	Deprecated               bool
	DeprecationWarning       *string
	Schema                   *schemaDump
	Subresources             *subresourcesDump
	AdditionalPrinterColumns []Column
	SelectableFields         []SelectableField
}

type schemaDump struct{ OpenAPIV3Schema any }

type subresourcesDump struct {
	Status *struct{}
	Scale  *Scale
}

func dumpSubresources(v *Version) *subresourcesDump {
	if !v.hasSubresource {
		return nil
	}
	d := &subresourcesDump{Scale: v.Scale}
	if v.Status {
		d.Status = &struct{}{}
	}
	return d
}

// dump returns the versions as a bad value.
func (m *model) dump() *versionsDump {
	const fixed = 256 // about what names and flags of a version take
	d := &versionsDump{}
	if m.CRD.Versions != nil {
		d.list = make([]versionDump, 0, len(m.versions))
	}
	for i := range m.versions {
		v := &m.versions[i]
		x := versionDump{Name: v.Name, Served: v.Served, Storage: v.Storage, Deprecated: v.Deprecated, DeprecationWarning: v.DeprecationWarning}
		d.size += fixed
		if s := m.schema(v); s != nil {
			x.Schema = new(schemaDump)
			if s.tree != nil {
				var size int
				x.Schema.OpenAPIV3Schema, size = compile.Dump(s.tree)
				d.size += size
			}
		}
		if !m.same.subresources {
			x.Subresources = dumpSubresources(v.Version)
		}
		if !m.same.columns {
			x.AdditionalPrinterColumns = v.Columns
		}
		if !m.same.selectable {
			x.SelectableFields = v.SelectableFields
		}
		d.size += fixed * (len(x.AdditionalPrinterColumns) + len(x.SelectableFields))
		d.list = append(d.list, x)
	}
	return d
}
