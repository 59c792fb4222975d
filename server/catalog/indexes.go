package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-dev/espalier/crd"
)

// IndexesAnnotation of a CRD declares indexes: the labels and selectable fields by which lists
// find objects without visiting all others. It is a list such as
//
//	label:team, field:spec.nodeName, field:spec.tags[]
//
// A field that ends with [] is an array of scalars. Field selectors write it without that, and
// select the objects that have a value in it.
const IndexesAnnotation = "espalier.dev/indexes"

// MaxIndexes bounds the indexes of a CRD: each of them takes memory for each object.
const MaxIndexes = 8

// Index is one declared index. It has a label or a field.
type Index struct {
	Label string
	Field string // as field selectors write it, spec.nodeName, and with [] at the end of an array
	// Integer says that the values of the field are whole numbers.
	Integer bool
}

// String is how the index is declared.
func (i Index) String() string {
	if i.Label != "" {
		return "label:" + i.Label
	}
	return "field:" + i.Field
}

const (
	// ArraySuffix is what the field of an array ends with.
	ArraySuffix = "[]"
	// MaxIndexedItems bounds the items of an array that is indexed: each has a place in the index.
	MaxIndexedItems = 64
)

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
		if array, ok := strings.CutSuffix(name, ArraySuffix); ok {
			var err error
			for i := range d.Versions {
				if err = arrayError(&d.Versions[i], array); err == nil {
					return Index{Field: name}, nil
				}
			}
			return Index{}, fmt.Errorf("%q is not an array that can be indexed: %w", name, err)
		}
		for i := range d.Versions {
			if v := &d.Versions[i]; Selectable(v, name) {
				n, err := nodeAt(v, name)
				return Index{Field: name, Integer: err == nil && n.Type == "integer"}, nil
			}
		}
		return Index{}, fmt.Errorf("%q is not a selectable field: add jsonPath %q to selectableFields of a version", name, "."+name)
	}
	return Index{}, fmt.Errorf("%q must be label:KEY or field:PATH, such as label:team or field:spec.nodeName", item)
}

var memberNames = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// arrayError says why a version has no array of scalars at a path that can be indexed.
func arrayError(v *crd.Version, path string) error {
	if !memberNames.MatchString(path) || path == "metadata" || strings.HasPrefix(path, "metadata.") {
		return errors.New("write the names of members, with dots between them, outside metadata")
	}
	array, err := nodeAt(v, path)
	if err != nil {
		return err
	}
	var item node
	if array.Type != "array" || json.Unmarshal(array.Items, &item) != nil ||
		item.Type != "string" && item.Type != "boolean" && item.Type != "integer" {
		return errors.New("its type must be array, with items of type string, boolean or integer")
	}
	if array.MaxItems == nil || *array.MaxItems > MaxIndexedItems {
		return fmt.Errorf("its schema must have maxItems, at most %d", MaxIndexedItems)
	}
	return nil
}

// node is what declarations of indexes need to know of a schema.
type node struct {
	Type       string                     `json:"type"`
	MaxItems   *int64                     `json:"maxItems"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
}

// nodeAt returns the schema of a version at a path of members.
func nodeAt(v *crd.Version, path string) (n node, err error) {
	at := json.RawMessage(v.Schema)
	for name := range strings.SplitSeq(path, ".") {
		n = node{}
		if json.Unmarshal(at, &n) != nil || n.Properties[name] == nil {
			return node{}, fmt.Errorf("the schema has no property %q", name)
		}
		at = n.Properties[name]
	}
	n = node{}
	return n, json.Unmarshal(at, &n)
}

// Selectable reports whether a version has a selectable field, written as in declarations of indexes.
func Selectable(v *crd.Version, field string) bool {
	if array, ok := strings.CutSuffix(field, ArraySuffix); ok {
		return arrayError(v, array) == nil
	}
	return slices.ContainsFunc(v.SelectableFields, func(f crd.SelectableField) bool { return strings.TrimPrefix(f.JSONPath, ".") == field })
}
