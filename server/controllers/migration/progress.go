package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
)

// phase is what a migration does.
type phase string

const (
	rewriting phase = "Rewriting"
	verifying phase = "Verifying"
	succeeded phase = "Succeeded"
	failed    phase = "Failed"
	undoing   phase = "Undoing"
	undone    phase = "Undone"
)

// The folders of this package, below the prefix of all keys. No API group begins with a
// hyphen.
const (
	progressFolder   = "-espalier/migrations"
	quarantineFolder = "-espalier/quarantine"
	preimageFolder   = "-espalier/preimages"
	// largeFolder has the pre-images that do not fit into the transaction of the rewrite.
	largeFolder = "-espalier/large-preimages"
	// forgottenFolder has a key that changes when a progress is deleted: a deleted key has no revision.
	forgottenFolder = "-espalier/forgotten-migrations"
)

// progress is how far a migration is. etcd has it under the UID of the migration, and
// every transaction of the migration moves it on.
type progress struct {
	Phase phase `json:"phase"`
	// CRD, StorageVersion and StoredVersions are those of the CRD when the migration began.
	CRD            types.UID `json:"crd,omitempty"`
	StorageVersion string    `json:"storageVersion,omitempty"`
	StoredVersions []string  `json:"storedVersions,omitempty"`
	// Strategy and Rules are what converted objects then: see conversionOf.
	Strategy string `json:"strategy,omitempty"`
	Rules    string `json:"rules,omitempty"`
	// Foreign says that another controller began the migration.
	Foreign bool `json:"foreign,omitempty"`
	// Next is the last name below the folder that is done with.
	Next string `json:"next,omitempty"`
	// Round counts the walks through all objects. There is another one if the scan finds
	// objects that the walk has not.
	Round int `json:"round,omitempty"`
	// Total is how many objects there were when the round began.
	Total       int64 `json:"total"`
	Migrated    int64 `json:"migrated"`
	Skipped     int64 `json:"skipped"`
	Quarantined int64 `json:"quarantined"`
	// Preimages is how many are kept, and Versions are those that they are stored in.
	Preimages int64    `json:"preimages,omitempty"`
	Versions  []string `json:"versions,omitempty"`
	// Keep is how long pre-images are kept after the end, and Expires is when that is.
	Keep    time.Duration `json:"keep,omitempty"`
	Expires *time.Time    `json:"expires,omitempty"`
	// Expired says that pre-images are being deleted, or are: nothing can be undone. It is
	// stored before the first one goes. Clocks of replicas differ.
	Expired bool `json:"expired,omitempty"`
	// Restored and Left count the objects that undo has put back, and those that it has left
	// because they have changed since or are deleted.
	Restored int64 `json:"restored,omitempty"`
	Left     int64 `json:"left,omitempty"`
	// Message is why the migration has failed.
	Message string `json:"message,omitempty"`

	revision int64 // in etcd; 0 if there is none
}

// seen is how many objects of this round are done with.
func (p *progress) seen() int64 { return p.Migrated + p.Skipped + p.Quarantined }

// remaining is about how many objects are left in this phase.
func (p *progress) remaining() int64 {
	switch p.Phase {
	case rewriting:
		return max(0, p.Total-p.seen())
	case undoing:
		return max(0, p.Preimages-p.Restored-p.Left)
	}
	return 0
}

// from notes a version that objects have been stored in.
func (p *progress) from(version string) {
	if at, found := slices.BinarySearch(p.Versions, version); !found {
		p.Versions = slices.Insert(slices.Clone(p.Versions), at, version)
	}
}

// put is the write of the progress.
func (p *progress) put(key string) clientv3.Op {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // the type has nothing in it that cannot be written
	}
	return clientv3.OpPut(key, string(data))
}

// Quarantined is an object that a migration has left as it is, and why.
type Quarantined struct {
	// Name is namespace/name, or name.
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

const (
	// maxListed is how many objects are listed, and maxReason how many bytes of each reason.
	maxListed, maxReason = 100, 200
)

// key returns the whole key of something below the prefix.
func (c *Config) key(parts ...string) string {
	return path.Join(append([]string{"/", c.Prefix}, parts...)...)
}

// load reads the progress of a migration; nil if it has not begun.
func (c *Config) load(ctx context.Context, uid types.UID) (*progress, error) {
	resp, err := c.Etcd.Get(ctx, c.key(progressFolder, string(uid)))
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	p := &progress{}
	if err := json.Unmarshal(resp.Kvs[0].Value, p); err != nil {
		return nil, fmt.Errorf("reading the progress of the migration in etcd at %s: %w", resp.Kvs[0].Key, err)
	}
	p.revision = resp.Kvs[0].ModRevision
	return p, nil
}

// listed reads which objects were left.
func (c *Config) listed(ctx context.Context, uid types.UID) ([]Quarantined, error) {
	resp, err := c.Etcd.Get(ctx, c.key(quarantineFolder, string(uid)))
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	var list []Quarantined
	if err := json.Unmarshal(resp.Kvs[0].Value, &list); err != nil {
		return nil, fmt.Errorf("reading the quarantined objects of the migration in etcd at %s: %w", resp.Kvs[0].Key, err)
	}
	return list, nil
}

// save writes the progress alone, on the condition that it is as it was read.
func (c *Config) save(ctx context.Context, uid types.UID, p *progress) error {
	key := c.key(progressFolder, string(uid))
	quarantine := c.key(quarantineFolder, string(uid))
	// Two operations: one alone is tried again by the store with conditions of its own.
	resp, err := c.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", p.revision)).
		Then(p.put(key), clientv3.OpGet(quarantine, clientv3.WithCountOnly())).Commit()
	switch {
	case err != nil:
		return err
	case !resp.Succeeded:
		return errAgain
	}
	p.revision = resp.Header.Revision
	return nil
}
