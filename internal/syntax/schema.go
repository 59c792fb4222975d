package syntax

// Schema is one schema object as written. Fields are nil or zero when their
// keyword is absent or null; see [Schema.Has] for the difference between a
// zero that was written and one that was not.
type Schema struct {
	Offset int // of the schema's first byte in the document

	Type        string
	Format      string
	Description string
	Pattern     string
	Default     *JSON

	Nullable         bool
	ExclusiveMaximum bool
	ExclusiveMinimum bool
	UniqueItems      bool

	// x-kubernetes-embedded-resource, x-kubernetes-int-or-string
	EmbeddedResource bool
	IntOrString      bool

	Maximum       *float64
	Minimum       *float64
	MultipleOf    *float64
	MaxLength     *int64
	MinLength     *int64
	MaxItems      *int64
	MinItems      *int64
	MaxProperties *int64
	MinProperties *int64

	Enum     []JSON
	Required []string

	Properties           []Property
	AdditionalProperties *SchemaOrBool
	Items                *Items

	AllOf []*Schema
	AnyOf []*Schema
	OneOf []*Schema
	Not   *Schema

	// x-kubernetes-preserve-unknown-fields, -list-type, -map-type,
	// -list-map-keys, -validations
	PreserveUnknownFields *bool
	ListType              *string
	MapType               *string
	ListMapKeys           []string
	Validations           []Rule

	rare    *Rare
	written set
	marks   []mark
}

// Rare holds the keywords that few schemas have; keeping them apart halves the
// size of the others.
type Rare struct {
	ID           string
	SchemaURL    string // $schema
	Ref          *string
	Title        string
	ExternalDocs *ExternalDocs
	Example      *JSON
	ReadOnly     bool
	Unions       []Union // x-kubernetes-unions

	PatternProperties []Property
	Definitions       []Property
	Dependencies      []Dependency
	AdditionalItems   *SchemaOrBool

	// Unknown lists the keywords that this package does not know.
	Unknown []Unknown
	// Malformed lists the keywords upstream does not know and that are not
	// written as the documents define them.
	Malformed []Malformed
	// Duplicates lists the keys that occur more than once.
	Duplicates []Duplicate
}

// noRare is what Rare returns for the schemas that have none.
var noRare Rare

// Rare returns the rarely used keywords, never nil. They are not to be modified.
func (s *Schema) Rare() *Rare {
	if s.rare == nil {
		return &noRare
	}
	return s.rare
}

// newRare returns the schema's own Rare, to be filled.
func (s *Schema) newRare() *Rare {
	if s.rare == nil {
		s.rare = new(Rare)
	}
	return s.rare
}

// Property is a named schema: an entry of properties, patternProperties or
// `definitions`.
type Property struct {
	Name   string
	Offset int // of the name
	Schema *Schema
}

// SchemaOrBool is the value of additionalProperties or additionalItems.
type SchemaOrBool struct {
	Allows bool // true if there is a schema
	Schema *Schema
}

// Items is the value of items. Neither field is set if the value is neither
// an object nor an array.
type Items struct {
	Schema *Schema
	Tuple  []*Schema
}

// Dependency is an entry of dependencies: a schema, or names of properties, or
// neither.
type Dependency struct {
	Name       string
	Offset     int
	Schema     *Schema
	Properties []string
}

// ExternalDocs is the value of externalDocs.
type ExternalDocs struct {
	Description string
	URL         string
}

// JSON is a value in a schema: a default, an example or an entry of enum.
type JSON struct {
	Raw     []byte // canonical
	Written []byte // as in the document, whose bytes it shares
	Offset  int
}

// Rule is an entry of x-kubernetes-validations.
type Rule struct {
	Offset            int
	Rule              string
	Message           string
	MessageExpression string
	Reason            *string
	FieldPath         string
	OptionalOldSelf   *bool

	marks []ruleMark
}

// Union is an entry of x-kubernetes-unions (KEP-2335). At most one of its fields
// may be set.
type Union struct {
	Offset        int
	Discriminator string       // the property that names the member in use, or empty
	Fields        []UnionField // sorted by name
}

// UnionField is a member of a union and its value of the discriminator.
type UnionField struct {
	Name   string
	Value  string
	Offset int
}

// Unknown is a keyword that has no meaning for this package or upstream.
type Unknown struct {
	Name  string
	Value JSON
}

// Malformed is a keyword whose value could not be used, and why.
type Malformed struct {
	Keyword string
	Detail  string
	Offset  int
}

// Duplicate is a key that occurs more than once; Offset is that of the last
// occurrence, which counts.
type Duplicate struct {
	In     string // the keyword whose value has the key, or empty: the schema itself
	Name   string
	Offset int
}

// set is a set of keywords, by their place in the table.
type set uint64

// mark is the place of a keyword's value.
type mark struct {
	keyword uint8
	offset  uint32
}

type ruleMark struct {
	field  uint8
	offset uint32
}

// Has reports whether the keyword called name is written with a value other
// than null.
func (s *Schema) Has(name string) bool {
	k, known := byName[name]
	return known && s.written&(1<<k) != 0
}

// At returns the offset of the value of the keyword called name, or, if it is
// not written, that of the schema.
func (s *Schema) At(name string) int {
	if k, known := byName[name]; known {
		for _, m := range s.marks {
			if m.keyword == k {
				return int(m.offset)
			}
		}
	}
	return s.Offset
}

// write notes that the keyword called name is written.
func (s *Schema) write(name string) { s.written |= 1 << byName[name] }

// unwrite takes back that the keyword called name is written.
func (s *Schema) unwrite(name string) { s.written &^= 1 << byName[name] }

// At returns the offset of the value of the rule's field called name, or, if
// it is not written, that of the rule.
func (r *Rule) At(name string) int {
	for _, m := range r.marks {
		if ruleFields[m.field].name == name {
			return int(m.offset)
		}
	}
	return r.Offset
}

// Has reports whether the rule's field called name is written.
func (r *Rule) Has(name string) bool { return r.At(name) != r.Offset }

// Property returns the property called name, or nil.
func (s *Schema) Property(name string) *Schema { return find(s.Properties, name) }

// find searches a sorted list.
func find(list []Property, name string) *Schema {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if list[mid].Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(list) && list[lo].Name == name {
		return list[lo].Schema
	}
	return nil
}

// ItemSchema returns the schema of items, or nil.
func (s *Schema) ItemSchema() *Schema {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}
