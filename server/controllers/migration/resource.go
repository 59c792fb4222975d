package migration

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// Value is an object as etcd has it, decrypted.
type Value struct {
	// Name is the key below the folder of the resource: namespace/name, or name.
	Name string
	Data []byte
}

// Rewritten is what becomes of a Value.
type Rewritten struct {
	// Data is to be stored instead; nil if the value is as it would be written now.
	Data []byte
	// Version is the one that the object is stored in.
	Version string
	// Err is why the object cannot be read or converted.
	Err error
}

// Resource is a resource whose objects can be rewritten, as its CRD is at one moment.
type Resource struct {
	// Resource is the one that encryption is configured for.
	Resource schema.GroupResource
	// Folder has the objects, without the prefix of all keys: "/example.com/widgets".
	Folder string
	// CRD is nil for built-in resources.
	CRD *catalog.Entry
	// Requirement is what must be true of the CRD when an object is stored.
	Requirement *store.Requirement
	// Rewrite says what is to be stored instead of each value. An error says nothing about
	// the values: a webhook does not answer, for example.
	Rewrite func(ctx context.Context, values []Value) ([]Rewritten, error)
	// Current reports whether a value is in the storage version. It reads no more of the
	// value than that takes.
	Current func(data []byte) bool
}

// ErrChanged is what Rewrite returns if the CRD is not the one of the Resource any more.
var ErrChanged = errAgain

// name is how messages name the resource: widgets.example.com.
func (r *Resource) name() string { return r.Resource.String() }
