package catalog

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-dev/espalier/crd"
)

// IndexesAnnotation of a CRD declares indexes: the labels and selectable fields by which lists
// find objects without visiting all others. It is a list such as
//
//	label:team, field:spec.nodeName
const IndexesAnnotation = "espalier.dev/indexes"

// MaxIndexes bounds the indexes of a CRD: each of them takes memory for each object.
const MaxIndexes = 8

// Index is one declared index. One of its members is empty.
type Index struct {
	Label string
	Field string // as field selectors write it: spec.nodeName
}

// Indexes returns the indexes that a CRD declares. The error says what is wrong with the
// declaration, and how to write it.
func Indexes(d *crd.CRD) ([]Index, error) {
	text, ok := d.Annotations[IndexesAnnotation]
	if !ok {
		return nil, nil
	}
	var all []Index
	for item := range strings.SplitSeq(text, ",") {
		one, err := indexOf(d, strings.TrimSpace(item))
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(all, one):
			return nil, fmt.Errorf("%q is declared twice", strings.TrimSpace(item))
		case len(all) == MaxIndexes:
			return nil, fmt.Errorf("a CRD must have at most %d indexes", MaxIndexes)
		}
		all = append(all, one)
	}
	return all, nil
}

func indexOf(d *crd.CRD, item string) (Index, error) {
	kind, name, _ := strings.Cut(item, ":")
	switch kind {
	case "label":
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return Index{}, fmt.Errorf("%q is not the key of a label: %s", name, strings.Join(problems, "; "))
		}
		return Index{Label: name}, nil
	case "field":
		for i := range d.Versions {
			if Selectable(&d.Versions[i], name) {
				return Index{Field: name}, nil
			}
		}
		return Index{}, fmt.Errorf("%q is not a selectable field: add jsonPath %q to selectableFields of a version", name, "."+name)
	}
	return Index{}, fmt.Errorf("%q must be label:KEY or field:PATH, such as label:team or field:spec.nodeName", item)
}

// Selectable reports whether a version has a selectable field, written as in field selectors.
func Selectable(v *crd.Version, field string) bool {
	return slices.ContainsFunc(v.SelectableFields, func(f crd.SelectableField) bool { return strings.TrimPrefix(f.JSONPath, ".") == field })
}
