package plan

import (
	"github.com/espalier-dev/espalier/internal/format"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/pattern"
)

// Type is the type that a schema states.
type Type uint8

// The types. Untyped is for schemas that state none; those with
// x-kubernetes-int-or-string have the flag IntOrString, whatever they state.
const (
	Untyped Type = iota
	Object
	Array
	String
	Integer
	Number
	Boolean
)

var typeNames = [...]string{"", "object", "array", "string", "integer", "number", "boolean"}

// String returns the type's name in a schema, "" for Untyped.
func (t Type) String() string { return typeNames[t] }

// TypeOf returns the type called name, Untyped if there is none.
func TypeOf(name string) Type {
	for t, n := range typeNames {
		if n == name {
			return Type(t)
		}
	}
	return Untyped
}

// Flags are the yes-or-no properties of a node.
type Flags uint32

// The flags of a node.
const (
	PreserveUnknown Flags = 1 << iota // x-kubernetes-preserve-unknown-fields
	Embedded                          // x-kubernetes-embedded-resource
	Nullable
	IntOrString     // x-kubernetes-int-or-string
	Whole           // numbers have to be integral
	Additional      // additionalProperties is set, as a schema or a boolean
	AdditionalFalse // additionalProperties: false
	HasDefault      // Rare.Default is set
	DefaultsBelow   // a node below this one, or this one, has a default
	ListSet         // x-kubernetes-list-type: set
	ListMap         // x-kubernetes-list-type: map
	ListAtomic      // x-kubernetes-list-type: atomic
	MapAtomic       // x-kubernetes-map-type: atomic
	MapGranular     // x-kubernetes-map-type: granular
	ReadOnly        // readOnly
	Strict          // values are validated as JSON Schema does, not as clusters do
	Literal         // values are validated as clusters do, also where they are mistaken and refuse more
	Exposed         // rules can see the value: it has a type, and so have its items or its map's values
	RulesBelow      // this node, or one below it that rules can see, has rules
	ListsBelow      // this node or one below it is a list of type set or map
	EmbeddedBelow   // this node or one below it is an embedded resource
	UnionsBelow     // this node or one below it has unions
	ReadOnlyBelow   // this node or one below it is read-only
	AssertsBelow    // this node or one below it restricts values beyond what normalization checks
)

// Kinds is a set of JSON kinds, bit k for jsondoc.Kind k.
type Kinds uint8

// Has reports whether k is in the set.
func (s Kinds) Has(k jsondoc.Kind) bool { return s>>k&1 != 0 }

// AnyKind is the set of all kinds.
const AnyKind Kinds = 1<<(jsondoc.Object+1) - 1

// KindsOf returns the set of the given kinds.
func KindsOf(kinds ...jsondoc.Kind) Kinds {
	var s Kinds
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Node is what a schema says about one value.
type Node struct {
	Accepts    Kinds  // what type, nullable and int-or-string admit
	Type       Type   //
	Flags      Flags  //
	refs       int32  // nodes and schemas that refer to this one; guarded by the table's lock
	hash       uint32 //
	Props      *Props // properties; nil if there are none
	Items      *Node  // items; nil if not specified
	Additional *Node  // the schema of additionalProperties; nil if a boolean or not specified
	Rare       *Rare  // what few nodes have; nil if nothing
	Asserts    []Assert
	chain      *Node // the next node of the table with the same hash
}

// Rare is what few nodes have.
type Rare struct {
	Default     string // canonical JSON
	ListMapKeys []string
	Unions      []Union
	UnionNames  *UnionNames // of Unions; nil if there are none
	Rules       []Rule
}

// Union is one entry of x-kubernetes-unions: at most one of the fields is set,
// and the discriminator, if there is one, says which.
type Union struct {
	Discriminator string
	Fields        []UnionField // sorted by name
}

// UnionField is a member of a union and its value of the discriminator.
type UnionField struct{ Name, Value string }

// Rule is one entry of x-kubernetes-validations.
type Rule struct {
	Rule, Message, MessageExpression, Reason, FieldPath string
	OptionalOldSelf                                     uint8 // 0 unset, 1 false, 2 true
}

// Op is what an assertion demands.
type Op uint8

// The assertions. Which fields of Assert each uses is said beside it.
const (
	Format           Op = iota // Text, Form
	Maximum                    // Num, as float64 bits; OutOfRange
	ExclusiveMaximum           // Num
	Minimum                    // Num
	ExclusiveMinimum           // Num
	MultipleOf                 // Num
	MaxLength                  // Num, as int64
	MinLength                  // Num
	MaxItems                   // Num
	MinItems                   // Num
	MaxProperties              // Num
	MinProperties              // Num
	Pattern                    // Text, Match
	Enum                       // List, JSON made by exec.EnumText; Names, Mixed
	Required                   // List; Names, those that are no properties
	AllOf                      // Nodes
	AnyOf                      // Nodes
	OneOf                      // Nodes
	Not                        // Nodes, one

	// Those of schemas that are refused, whose defaults are validated all the
	// same.
	OtherType   // Text, an unknown type
	UniqueItems //
)

// Assert is one value validation.
type Assert struct {
	Op         Op
	Form       format.Format
	OutOfRange bool // the bound is no number of the type and format beside it; upstream then refuses every number
	Num        uint64
	Text       string
	*Operands
}

// Operands are what only some assertions have.
type Operands struct {
	List  []string
	Names *Props // of List, for looking one up
	Mixed bool   // an enum lists other values than strings: Names are keys made by exec.EnumKey, not the strings
	Nodes []*Node
	Match *pattern.Pattern
}

// Default returns the node's default as canonical JSON, "" if it has none.
func (n *Node) Default() string {
	if n.Flags&HasDefault == 0 {
		return ""
	}
	return n.Rare.Default
}

// SpecifiesMeta reports whether the schema of a resource itself says what every
// resource has: kind, apiVersion and the names in its metadata. Rules see such
// a resource as its schema describes it; of the metadata of any other they see
// the names and nothing else.
func SpecifiesMeta(n *Node) bool {
	meta := n.Property("metadata")
	return n.Property("kind").is(String) && n.Property("apiVersion").is(String) &&
		meta.is(Object) && meta.Property("name").is(String) && meta.Property("generateName").is(String)
}

func (n *Node) is(t Type) bool { return n != nil && n.Type == t }

// Property returns the node of the property called name, nil if there is none.
func (n *Node) Property(name string) *Node {
	if n == nil {
		return nil
	}
	if rank := n.Props.Lookup([]byte(name)); rank >= 0 {
		return n.Props.At(rank).Node
	}
	return nil
}
