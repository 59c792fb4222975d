package catalog

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/crd"
)

// Names are the names of a resource.
type Names struct {
	Plural, Singular string
	Kind, ListKind   string
	ShortNames       []string
	Categories       []string
}

// Equal reports whether the names are the same, in the same order.
func (n *Names) Equal(o *Names) bool {
	return n.Plural == o.Plural && n.Singular == o.Singular &&
		n.Kind == o.Kind && n.ListKind == o.ListKind &&
		slices.Equal(n.ShortNames, o.ShortNames) && slices.Equal(n.Categories, o.Categories)
}

// Hash is a SHA-256 sum. Equal hashes mean equal content.
type Hash [32]byte

// Version is one version of a resource.
type Version struct {
	Name             string
	Served           bool
	Storage          bool
	Deprecated       bool
	Status           bool // the status subresource is enabled
	Scale            bool // the scale subresource is enabled
	SelectableFields bool // there are some

	// Hash is of everything that is published about the version: schema,
	// names, scope, subresources, selectable fields. It does not change with
	// what concerns only the serving of it, such as conversion.
	Hash Hash
	// SchemaHash is of the schema alone; zero if there is none.
	SchemaHash Hash
	// StorageHash is of all that storage, watch cache and open watches of the version
	// depend on, apart from the schema: group, names, scope, whether it is served,
	// selectable fields, indexes, printer columns, conversion with its rules, storage version.
	StorageHash Hash
}

// Entry is one CRD at one resourceVersion. It is immutable.
type Entry struct {
	Name            string // plural.group
	UID             types.UID
	Generation      int64
	ResourceVersion string
	Revision        uint64 // ResourceVersion as a number

	Group      string
	Names      Names // as the CRD asks for
	Accepted   Names // as its status says that they are in use
	Namespaced bool

	Versions              []Version // as written
	StorageVersion        string    // the version that objects are stored in
	StoredVersions        []string  // the versions that objects may be stored in
	Conversion            string    // the strategy: None or Webhook
	PreserveUnknownFields bool

	// What the conditions of the status say.
	NamesAccepted, Established, Terminating bool

	EstablishedAt      time.Time // when the condition Established last changed
	ObservedGeneration int64     // of the status; 0 if it is not set
	Deleting           bool      // has a deletionTimestamp
	Finalizers         []string

	// SpecHash is of the spec, the accepted names and the conversion rules.
	SpecHash Hash

	// Loan is where a CRD is stored that is not one of this catalog's own; nil for those.
	Loan *Loan

	packed []byte
	size   int
}

// Version returns the version called name, or nil.
func (e *Entry) Version(name string) *Version {
	for i := range e.Versions {
		if e.Versions[i].Name == name {
			return &e.Versions[i]
		}
	}
	return nil
}

// JSON returns the CRD as it is stored, in apiextensions.k8s.io/v1,
// with its resourceVersion. It is unpacked anew by every call.
func (e *Entry) JSON() ([]byte, error) { return unpack(e.packed, e.size) }

// CRD unpacks and parses the CRD.
func (e *Entry) CRD() (*crd.CRD, error) {
	data, err := e.JSON()
	if err != nil {
		return nil, err
	}
	return crd.Parse(data)
}
