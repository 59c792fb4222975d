package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Shared has the keys of what a tenant, the provider, shares with others, its consumers. They are
// in the etcd that all of them are in:
//
//	PREFIX-shared/PROVIDER/grants/GROUP/RESOURCE/CONSUMER              that the consumer has bound the resource, and what it accepts
//	PREFIX-shared/PROVIDER/objects/GROUP/RESOURCE/CONSUMER/NS/NAME     a mark for each object; nothing is in it
//	PREFIX-tenants/CONSUMER/-espalier/bound/GROUP/RESOURCE             which provider the consumer has the resource from
//	PREFIX-tenants/CONSUMER/GROUP/RESOURCE/NS/NAME                     the object
//
// Tenants are named by their UIDs. An object is written in one transaction with its mark, so that
// the marks have the revisions of the objects: one watch of a range of marks is one of the objects of
// all consumers.
type Shared struct {
	prefix string // of the server
	// Provider is the UID of the tenant that shares.
	Provider types.UID
}

// SharedBy returns the keys of a provider. prefix is that of the server.
func SharedBy(prefix string, provider types.UID) Shared { return Shared{prefix, provider} }

// Folder is what all keys begin with.
func (s Shared) Folder() string {
	return path.Join("/", s.prefix) + "-shared/" + string(s.Provider) + "/"
}

// Guard is the guard of the provider.
func (s Shared) Guard() string { return Guard(s.prefix, s.Provider) }

// Served is the condition that the provider exists and is not being imported.
func (s Shared) Served() clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.Guard()), "<", importing)
}

// Grants is the folder of the grants of all resources.
func (s Shared) Grants() string { return s.Folder() + "grants/" }

// Grant is the key of the grant of a consumer; without one, the folder of all grants.
func (s Shared) Grant(r schema.GroupResource, consumer types.UID) string {
	return s.Grants() + r.Group + "/" + r.Resource + "/" + string(consumer)
}

// Marks is what a backend of all marks has as its prefix: below it is the folder of a resource.
func (s Shared) Marks() string { return s.Folder() + "objects" }

// Mark is the key of the mark of an object; without a name, the folder of all of a consumer.
func (s Shared) Mark(r schema.GroupResource, consumer types.UID, name string) string {
	return s.Marks() + "/" + r.Group + "/" + r.Resource + "/" + string(consumer) + "/" + name
}

// Object is the key of the object that a mark is for, and the consumer that has it; empty if the
// key is not that of a mark.
func (s Shared) Object(mark string) (key string, consumer types.UID) {
	below, ok := strings.CutPrefix(mark, s.Marks()+"/")
	parts := strings.SplitN(below, "/", 4)
	if !ok || len(parts) < 4 {
		return "", ""
	}
	return Prefix(s.prefix, types.UID(parts[2])) + "/" + parts[0] + "/" + parts[1] + "/" + parts[3], types.UID(parts[2])
}

// Resource is the resource of a mark, or of the folder of all marks of a resource.
func (s Shared) Resource(mark string) schema.GroupResource {
	parts := strings.SplitN(strings.TrimPrefix(mark, s.Marks()+"/")+"//", "/", 3)
	return schema.GroupResource{Group: parts[0], Resource: parts[1]}
}

const boundFolder = "-espalier/bound/"

// BoundFolder has the notes of what a consumer has bound, below its prefix.
func BoundFolder(prefix string, consumer types.UID) string {
	return Prefix(prefix, consumer) + "/" + boundFolder
}

// BoundKey is the key of the note of one resource.
func BoundKey(prefix string, consumer types.UID, r schema.GroupResource) string {
	return BoundFolder(prefix, consumer) + r.Group + "/" + r.Resource
}

// Bound is the note of a consumer that it has bound a resource.
type Bound struct {
	Resource schema.GroupResource `json:"-"`
	Provider types.UID            `json:"provider"`
	// Binding and UID are those of the APIBinding.
	Binding string    `json:"binding"`
	UID     types.UID `json:"uid"`
	// Revision is that of the note.
	Revision int64 `json:"-"`
}

// ReadBound is the operation that reads what a consumer has bound, and BoundIn decodes its answer, by resource.
func ReadBound(prefix string, consumer types.UID) clientv3.Op {
	return clientv3.OpGet(BoundFolder(prefix, consumer), clientv3.WithPrefix())
}

// BoundIn decodes what ReadBound reads.
func BoundIn(prefix string, consumer types.UID, kvs []*mvccpb.KeyValue) (map[schema.GroupResource]Bound, error) {
	folder, all := BoundFolder(prefix, consumer), map[schema.GroupResource]Bound{}
	for _, kv := range kvs {
		group, resource, ok := strings.Cut(strings.TrimPrefix(string(kv.Key), folder), "/")
		b := Bound{Resource: schema.GroupResource{Group: group, Resource: resource}, Revision: kv.ModRevision}
		if err := json.Unmarshal(kv.Value, &b); err != nil || !ok {
			return nil, fmt.Errorf("reading which APIs a tenant has bound: the key %s is damaged: %w", kv.Key, err)
		}
		all[b.Resource] = b
	}
	return all, nil
}

// unbind deletes what providers have of a consumer whose guard is gone: no binding is made after
// that, and notes are all that there were. The marks go before the objects, so that watches of providers can still read what goes.
func unbind(ctx context.Context, etcd *clientv3.Client, prefix string, consumer types.UID, notes map[schema.GroupResource]Bound) error {
	for r, b := range notes {
		of := SharedBy(prefix, b.Provider)
		if err := empty(ctx, etcd, below(of.Mark(r, consumer, ""))); err != nil {
			return err
		}
		if _, err := etcd.Delete(ctx, of.Grant(r, consumer)); err != nil {
			return err
		}
	}
	return nil
}

// Stays is why a tenant cannot be moved to another etcd; empty if it can. Objects of a bound API and
// their marks are written in one transaction.
func Stays(ctx context.Context, etcd clientv3.KV, prefix string, uid types.UID) (why string, err error) {
	for folder, text := range map[string]string{
		BoundFolder(prefix, uid):            "it has bound APIs of another tenant: delete its APIBindings first",
		SharedBy(prefix, uid).Folder():      "other tenants have bound its APIs: they must delete their APIBindings first",
		Prefix(prefix, uid) + exportsFolder: "it has APIExports, which tenants of its etcd may bind at any moment: delete them first",
	} {
		found, err := etcd.Get(ctx, folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return "", err
		}
		if found.Count > 0 {
			why = max(why, text)
		}
	}
	return why, nil
}

// exportsFolder has the APIExports of a tenant, below its prefix.
const exportsFolder = "/apis.espalier.dev/apiexports/"
