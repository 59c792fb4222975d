package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Format names the format of files, and Version is the version that this package writes and reads.
const (
	Format  = "espalier.dev/tenant"
	Version = 1
)

// CRDs is the resource that comes first in a file.
const CRDs = "customresourcedefinitions.apiextensions.k8s.io"

// The bounds of what a Reader accepts. etcd takes values of 1.5 MiB by default; JSON may be some
// times as long.
const (
	maxHeader    = 1 << 20
	maxLine      = 32 << 20
	maxObjects   = 50_000_000
	maxBytes     = 1 << 40
	maxResources = 100_000
	maxSegment   = 4096
)

// Header is the first line of a file.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Server is the version of the server that wrote the file.
	Server string `json:"server"`
	// Tenant, UID and Spec are those of the tenant.
	Tenant string          `json:"tenant"`
	UID    string          `json:"uid"`
	Spec   json.RawMessage `json:"spec,omitempty"`
	// Revision is the revision of etcd at which all objects were read, and Created is when.
	Revision int64     `json:"revision"`
	Created  time.Time `json:"created"`
}

// Record is an object.
type Record struct {
	// Resource is PLURAL or PLURAL.GROUP.
	Resource string `json:"resource"`
	// Object has an apiVersion, a kind and metadata, and no resourceVersion.
	Object json.RawMessage `json:"object"`

	// Namespace and Name are those of the object.
	Namespace string `json:"-"`
	Name      string `json:"-"`
}

// End is the last line of a file.
type End struct {
	// Objects is how many objects the file has.
	Objects int64 `json:"objects"`
	// SHA256 is the checksum of all lines before this one, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Expiring and Unserved are how many objects were left out because they expire, as events do,
	// and because no API of the server served them.
	Expiring int64 `json:"expiring"`
	Unserved int64 `json:"unserved"`
}

// line is any line but the first.
type line struct {
	Resource string          `json:"resource,omitempty"`
	Object   json.RawMessage `json:"object,omitempty"`
	End      *End            `json:"end,omitempty"`
	Failed   string          `json:"failed,omitempty"`
}

// ErrDamaged is what errors are that say that a file is damaged or incomplete.
var ErrDamaged = errors.New("the file is damaged or incomplete")

func damaged(why string, args ...any) error {
	return fmt.Errorf("%w: "+why+"; export the tenant again, or take another copy of the file", append([]any{ErrDamaged}, args...)...)
}

// FailedError is that the server failed while it wrote the file.
type FailedError struct{ Why string }

// Error implements error.
func (e *FailedError) Error() string { return "the export failed on the server: " + e.Why }

// metadata is what is read of an object.
type metadata struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// place is where an object is within its resource. Its order is that of objects in a file.
func place(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
