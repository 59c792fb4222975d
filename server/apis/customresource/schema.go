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
	preserve bool     // the CRD has preserveUnknownFields: nothing is pruned
}

// versionSchema is the schema of one version, compiled when it is first used.
// Its address is the schema marker of the objects that it has normalized.
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

// encodingIDs maps identifiers of encoders to identifiers of encodings by one schema. An
// encoder of k8s.io/apiserver takes its identifier once per watch, but the schema may
// change during the watch.
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

// crdVersion unpacks the CRD and the version that the schema is compiled from.
func (s *versionSchema) crdVersion() (*crd.CRD, *crd.Version, error) {
	d, err := s.entry.CRD()
	if err != nil {
		return nil, nil, err
	}
	v := d.Version(s.name)
	if v == nil {
		return nil, nil, fmt.Errorf("there is no version %q", s.name)
	}
	return d, v, nil
}

// compiled compiles the schema on the first call and returns it.
func (s *versionSchema) compiled() (*versionSchema, error) {
	s.once.Do(func() {
		d, v, err := s.crdVersion()
		if err == nil {
			s.Schema, err = request.Compile(v, s.key.preserve)
			d.Release()
		}
		if err != nil {
			s.err = fmt.Errorf("failed to compile the schema: %w", err)
		}
	})
	return s, s.err
}

// schemaSet has the schemas of all versions at one revision of a CRD. It is
// immutable.
type schemaSet map[string]*versionSchema
