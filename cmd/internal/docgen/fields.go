package docgen

import (
	"strings"

	"github.com/espalier-dev/espalier/crd"
)

// Field is a field below another.
type Field struct {
	Name        string
	Type        string
	Description string // one line, without control characters
	Leaf        bool   // there are no fields below
}

// Fields lists the fields at a path, which is one of Explain.
func Fields(d *crd.CRD, v *crd.Version, path []string) ([]Field, error) {
	at, err := outlineVersion(d, v).Root.find(path)
	if err != nil {
		return nil, err
	}
	var list []Field
	for _, f := range at.Fields {
		line, _, _ := strings.Cut(strings.TrimSpace(f.Description), "\n")
		list = append(list, Field{Name: f.Name, Type: f.Type, Description: visible(line), Leaf: len(f.Fields) == 0})
	}
	return list, nil
}
