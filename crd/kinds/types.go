package kinds

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed types.json
var typesFile []byte

// form is what values of a type look like in a tree.
type form int

const (
	anyForm form = iota
	stringForm
	quantityForm // a string, or a number in the command line's trees
	integerForm
	floatForm
	boolForm
	intOrStringForm
	objectForm
	listForm
	mapForm
)

// fieldType is the type of a field, or of the items of a list.
type fieldType struct {
	form    form
	pointer bool
	object  *objectType // of objects
	items   *fieldType  // of lists and maps
	key     string      // of the items of a list, by which they are matched

	resources bool // a list of resources: amounts by name
}

// objectType is a struct.
type objectType struct {
	name   string
	fields map[string]*fieldType
	names  []string // of fields, sorted
	data   *typeData

	// validates and defaults tell whether there is something to do for a value of this
	// type or of those below it.
	validates, defaults, warns, drops bool

	loaded bool // see load

	// dropsWhole tells whether an object that has nothing but dropped fields is
	// dropped itself.
	dropsWhole bool
}

// scalars are the types without parts, as types.json calls them.
var scalars = map[string]form{
	"string": stringForm, "bytes": stringForm, "time": stringForm, "microTime": stringForm, "duration": stringForm,
	"quantity": quantityForm, "int32": integerForm, "int64": integerForm, "int": integerForm, "uint8": integerForm, "uint64": integerForm, "float64": floatForm,
	"bool": boolForm, "intOrString": intOrStringForm, "any": anyForm,
}

// readTypes reads types.json.
var readTypes = sync.OnceValue(func() map[string]*objectType {
	var file map[string]map[string]string
	if err := json.Unmarshal(typesFile, &file); err != nil {
		panic(fmt.Sprintf("kinds: reading types.json failed: %v", err))
	}
	all := make(map[string]*objectType, len(file))
	for name := range file {
		all[name] = &objectType{name: name}
	}
	for name, fields := range file {
		t := all[name]
		t.names = slices.Sorted(maps.Keys(fields))
		t.fields = make(map[string]*fieldType, len(fields))
		for field, written := range fields {
			t.fields[field] = parseType(all, written)
		}
	}
	return all
})

// parseType reads a type as types.json writes it. The file is part of the program:
// what cannot be read is a panic.
func parseType(all map[string]*objectType, written string) *fieldType {
	if rest, ok := strings.CutPrefix(written, "*"); ok {
		t := *parseType(all, rest)
		t.pointer = true
		return &t
	}
	if written == "resources" {
		t := parseType(all, "map[string]quantity")
		t.resources = true
		return t
	}
	if rest, ok := strings.CutPrefix(written, "map[string]"); ok {
		return &fieldType{form: mapForm, items: parseType(all, rest)}
	}
	if rest, ok := strings.CutPrefix(written, "["); ok {
		key, items, _ := strings.Cut(rest, "]")
		return &fieldType{form: listForm, items: parseType(all, items), key: key}
	}
	if f, ok := scalars[written]; ok {
		return &fieldType{form: f}
	}
	if t, ok := all[written]; ok {
		return &fieldType{form: objectForm, object: t}
	}
	panic("kinds: types.json has the unknown type " + written)
}

// isSet reports whether a field has a value that Go would not read as its zero value.
func (t *fieldType) isSet(value any) bool {
	if value == nil {
		return false
	}
	if t.pointer {
		return true
	}
	switch v := value.(type) {
	case string:
		return v != ""
	case int64:
		return v != 0
	case float64:
		return v != 0
	case bool:
		return v
	case []any:
		return len(v) > 0
	case map[string]any:
		if t.form != objectForm {
			return len(v) > 0
		}
		for name, member := range v {
			if m := t.object.fields[name]; m != nil && m.isSet(member) {
				return true
			}
		}
		return false
	}
	return true
}

// below returns the struct that values of the type are, or consist of.
func (t *fieldType) below() *objectType {
	for t.items != nil {
		t = t.items
	}
	return t.object
}
