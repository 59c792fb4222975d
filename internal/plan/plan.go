package plan

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Flags are the yes-or-no properties of a node.
type Flags uint16

// The flags of a node.
const (
	PreserveUnknown Flags = 1 << iota // x-kubernetes-preserve-unknown-fields
	Embedded                          // x-kubernetes-embedded-resource
	Nullable
	IntOrString     // x-kubernetes-int-or-string
	Integer         // numbers have to be integral
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
	Flags      Flags  //
	refs       int32  // nodes and schemas that refer to this one; guarded by the table's lock
	Props      *Props // properties; nil if there are none
	Items      *Node  // items; nil if not specified
	Additional *Node  // the schema of additionalProperties; nil if a boolean or not specified
	Rare       *Rare  // what few nodes have; nil if nothing
	Asserts    []Assert
	hash       uint64
	chain      *Node // the next node of the table with the same hash
}

// Rare is what few nodes have.
type Rare struct {
	Default     string // canonical JSON
	ListMapKeys []string
	Unions      []Union
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
	Format           Op = iota // Text
	Maximum                    // Num, as float64 bits
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
	Pattern                    // Text
	Enum                       // List, canonical JSON
	Required                   // List
	AllOf                      // Nodes
	AnyOf                      // Nodes
	OneOf                      // Nodes
	Not                        // Nodes, one
)

// Assert is one value validation.
type Assert struct {
	Op    Op
	Num   uint64
	Text  string
	List  []string
	Nodes []*Node
}

// Default returns the node's default as canonical JSON, "" if it has none.
func (n *Node) Default() string {
	if n.Flags&HasDefault == 0 {
		return ""
	}
	return n.Rare.Default
}
