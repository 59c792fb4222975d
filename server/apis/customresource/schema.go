package customresource

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/server/catalog"
)

// schemaKey identifies what a versionSchema is compiled from.
type schemaKey struct {
	hash     [32]byte // of the schema as written
	preserve bool     // the definition has preserveUnknownFields: nothing is pruned
}

// versionSchema is the schema of one version, compiled when it is first used.
// Objects are stamped with it: its address says which schema they went through.
type versionSchema struct {
	key schemaKey
	id  string // of this one in this process
	ids encodingIDs

	entry *catalog.Entry // the first of those that have it
	name  string         // of the version

	// types are how fields are merged; see types.go.
	types func() managedfields.TypeConverter

	once            sync.Once
	*request.Schema // once it is compiled
	err             error
}

// encodingIDs are the identifiers of encodings by one schema, by those that encoders give
// them. An encoder of the library takes its identifier once in the life of a watch; the
// schema may change in it.
type encodingIDs struct {
	known atomic.Pointer[map[runtime.Identifier]runtime.Identifier] // not changed, but replaced
}

// maxEncodingIDs is how many identifiers a schema keeps. There are some per media type
// and type of event; clients can make up others by options of tables.
const maxEncodingIDs = 64

// encodingID returns the identifier of what an encoder writes by this schema.
func (s *versionSchema) encodingID(of runtime.Identifier) runtime.Identifier {
	known := s.ids.known.Load()
	if known != nil {
		if id, ok := (*known)[of]; ok {
			return id
		}
	}
	id := of + runtime.Identifier(" by schema "+s.id)
	more := map[runtime.Identifier]runtime.Identifier{of: id}
	if known != nil {
		if len(*known) >= maxEncodingIDs {
			return id
		}
		maps.Copy(more, *known)
	}
	s.ids.known.CompareAndSwap(known, &more) // if another one was first, the next event adds it
	return id
}

// schemaIDs counts the schemas of this process.
var schemaIDs atomic.Uint64

func newVersionSchema(key schemaKey, e *catalog.Entry, name string) *versionSchema {
	s := &versionSchema{key: key, id: strconv.FormatUint(schemaIDs.Add(1), 36), entry: e, name: name}
	s.types = sync.OnceValue(s.loadTypes)
	return s
}

// definition unpacks what the schema is made of.
func (s *versionSchema) definition() (*crd.CRD, *crd.Version, error) {
	d, err := s.entry.Definition()
	if err != nil {
		return nil, nil, err
	}
	v := d.Version(s.name)
	if v == nil {
		return nil, nil, fmt.Errorf("there is no version %q", s.name)
	}
	return d, v, nil
}

// compiled returns the schema itself, compiled, or why it cannot be.
func (s *versionSchema) compiled() (*versionSchema, error) {
	s.once.Do(func() {
		d, v, err := s.definition()
		if err == nil {
			s.Schema, err = request.Compile(v, s.key.preserve)
			d.Release()
		}
		if err != nil {
			s.err = fmt.Errorf("the schema cannot be compiled: %w", err)
		}
	})
	return s, s.err
}

// schemaSet has the schemas of all versions of a resource in one state of its
// definition. It is immutable.
type schemaSet map[string]*versionSchema
