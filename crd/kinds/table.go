package kinds

import (
	"regexp"
	"strings"
)

// Column is a column of a table.
type Column struct {
	Name     string `yaml:"name"`
	Type     string `yaml:"type"`
	Format   string `yaml:"format"`
	Priority int32  `yaml:"priority"`
	// Doc is the description, or the field (meta/v1.ObjectMeta.name) whose
	// documentation it is.
	Doc  string `yaml:"doc"`
	Cell *expr  `yaml:"cell"`
	// Hidden columns have cells, but tables do not define them.
	Hidden bool `yaml:"hidden"`
}

// DocumentedField returns the type and the field whose documentation describes the
// column. ok is false if Doc is the description itself.
func (c *Column) DocumentedField() (typeName, field string, ok bool) {
	i := strings.LastIndexByte(c.Doc, '.')
	if i < 0 || readTypes()[c.Doc[:i]] == nil {
		return "", "", false
	}
	return c.Doc[:i], c.Doc[i+1:], true
}

// Row returns the cells of an object. A cell whose expression fails shows the error.
func (k *Kind) Row(tree map[string]any) []any {
	self := &object{k.object(), tree}
	s := &scope{self: self, root: self, kind: k.Kind}
	cells := make([]any, len(k.Columns))
	for i := range k.Columns {
		value, err := k.Columns[i].Cell.eval(s)
		if err != nil {
			cells[i] = "<error: " + err.Error() + ">"
			continue
		}
		cells[i] = plain(value)
	}
	return cells
}

// SelectorPaths are the fields that the field selectors read, such as spec.type.
func (k *Kind) SelectorPaths() []string {
	var paths []string
	for _, selector := range k.Selectors {
		for _, found := range selfPath.FindAllStringSubmatch(selector.value.source, -1) {
			paths = append(paths, found[1])
		}
	}
	return paths
}

// selfPath is a field in an expression.
var selfPath = regexp.MustCompile(`\bself\.([A-Za-z.]+)`)

// Fields returns the values of the field selectors of an object.
func (k *Kind) Fields(tree map[string]any) map[string]string {
	if len(k.Selectors) == 0 {
		return nil
	}
	self := &object{k.object(), tree}
	s := &scope{self: self, root: self, kind: k.Kind}
	set := make(map[string]string, len(k.Selectors)+2)
	for _, selector := range k.Selectors {
		value, err := selector.value.text(s)
		if err != nil {
			value = "" // a test evaluates every selector
		}
		set[selector.name] = value
	}
	return set
}
