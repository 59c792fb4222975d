package tenants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/archive"
	"github.com/espalier-dev/espalier/server/storage/meter"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// AwaitsImport is the annotation of a tenant that was created for an import. Requests to it are
// refused until it was imported.
const AwaitsImport = "espalier.dev/awaits-import"

// importing begins the value of the guard of a tenant that is being imported. What follows is
// different for each attempt: when another one begins, writes of this one fail. No name of a tenant
// begins so, and all that do are greater than each of these.
const importing = "~importing/"

// imports reports whether a value of a guard is that of an import.
func imports(value string) bool { return strings.HasPrefix(value, importing) }

// incomplete reports whether a tenant whose guard has a value is being imported, or will be. One with
// an epoch was imported before.
func (t Tenant) incomplete(guard string) bool {
	return imports(guard) || guard == "" && t.awaits && t.Epoch == 0
}

// errImporting is that a tenant is not complete.
var errImporting = errors.New("the tenant is not complete: its import has not begun, is under way, or was stopped; wait for its end, import it again, or delete the tenant")

const (
	// importKeys and importBytes bound a transaction: etcd takes 128 operations and 1.5 MiB by
	// default.
	importKeys, importBytes = 100, 512 << 10
)

// take makes an empty tenant what an archive has.
func (t *Transfer) take(w http.ResponseWriter, req *http.Request, name string) error {
	ctx := req.Context()
	from, err := archive.NewReader(&patientBody{req.Body, http.NewResponseController(w)})
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	i := &importer{Transfer: t, from: from, mine: importing + string(uuid.NewUUID())}
	var use *Use
	if i.tenant, use, err = t.openBy(ctx, name, i.claim); err != nil {
		return err
	}
	defer use.Release()
	i.etcd, i.prefix = use.Client(), Prefix(t.prefix, i.tenant.UID)
	if err := i.run(ctx); err != nil {
		klog.ErrorS(err, "Importing a tenant failed", "tenant", name)
		return err
	}
	klog.InfoS("Imported a tenant", "tenant", name, "objects", from.End().Objects, "from", from.Header.Tenant, "exported", from.Header.Created)
	t.noted(ctx, name)
	responsewriters.WriteRawJSON(http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Message: fmt.Sprintf("imported %d objects", from.End().Objects),
	}, w)
	return nil
}

// patientBody fails if the client sends nothing for a while.
type patientBody struct {
	io.Reader
	connection *http.ResponseController
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.connection.SetReadDeadline(time.Now().Add(stall)) // fails only without a connection, as in tests
	n, err := b.Reader.Read(p)
	_ = b.connection.SetReadDeadline(time.Time{})
	return n, err
}

// noted removes the annotation that has no effect any more.
func (t *Transfer) noted(ctx context.Context, name string) {
	patch := []byte(`{"metadata":{"annotations":{"` + AwaitsImport + `":null}}}`)
	if _, err := t.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		klog.ErrorS(err, "Removing the annotation "+AwaitsImport+" of a tenant failed; it has no effect any more", "tenant", name)
	}
}

// importer writes what one archive has into one tenant.
type importer struct {
	*Transfer
	from   *archive.Reader
	mine   string // the value of the guard
	tenant Tenant
	etcd   *clientv3.Client
	prefix string
	all    *resources
	used   meter.Usage

	puts []clientv3.Op
	size int
}

// claim makes the guard that of this attempt, if the tenant has no data, or only that of an attempt
// before. It is a guarding.
func (i *importer) claim(ctx context.Context, use *Use, t Tenant, version string) (bool, error) {
	value, _, err := i.guardOf(ctx, use, t)
	if err != nil {
		return false, err
	}
	used := !imports(value)
	if value == "" { // nor has a tenant a guard that was moved and not used since
		found, err := use.Client().Get(ctx, Prefix(i.registry.prefix, t.UID)+"/", clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return false, err
		}
		used = len(found.Kvs) > 0 || t.Epoch > 0
	}
	switch {
	case value == "" && !used:
		return i.createGuard(ctx, use, t, version, 0, i.mine)
	case used:
		return false, conflict(t.Name, "the tenant has been used, or imported, already; an import is only into a new tenant: choose another name, or delete this tenant first")
	}
	guard := Guard(i.registry.prefix, t.UID)
	answer, err := use.Client().Txn(ctx).If(clientv3.Compare(clientv3.Value(guard), "=", value)).Then(clientv3.OpPut(guard, i.mine)).Commit()
	return err == nil && answer.Succeeded, err
}

// claimed is the condition of all writes.
func (i *importer) claimed() clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(Guard(i.registry.prefix, i.tenant.UID)), "=", i.mine)
}

// errOvertaken is that the guard is no longer that of this attempt.
var errOvertaken = errors.New("the tenant was deleted meanwhile, or another import of it has begun")

func (i *importer) run(ctx context.Context) (err error) {
	if i.all, err = i.newResources(); err != nil {
		return err
	}
	for _, keys := range ranges(i.registry.prefix, i.tenant.UID) { // of an attempt before
		if err := empty(ctx, i.etcd, keys, i.claimed()); errors.Is(err, errFenced) {
			return conflict(i.tenant.Name, errOvertaken.Error())
		} else if err != nil {
			return fmt.Errorf("deleting what an import before has left: %w", err)
		}
	}
	for {
		record, err := i.from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if err := i.add(ctx, record); apierrors.IsBadRequest(err) {
			return i.blame(err)
		} else if err != nil {
			return err
		}
	}
	if err := i.flush(ctx); err != nil {
		return err
	}
	return i.finish(ctx)
}

// blame returns what is wrong with an object, if the file is whole, and otherwise that the file is damaged: its
// checksum is at the end. Users would look for a mistake in an object that no client has written.
func (i *importer) blame(object error) error {
	for {
		if _, err := i.from.Next(); errors.Is(err, io.EOF) {
			return object
		} else if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
}

// finish makes the guard an ordinary one: from then on the tenant is served.
func (i *importer) finish(ctx context.Context) error {
	answer, err := i.etcd.Txn(ctx).If(i.claimed()).Then(clientv3.OpPut(Guard(i.registry.prefix, i.tenant.UID), i.tenant.Holder())).Commit()
	if err != nil {
		return fmt.Errorf("everything was written, but etcd did not confirm the end of the import: %w; look whether the tenant answers, and import it again if it does not", err)
	}
	if !answer.Succeeded {
		return conflict(i.tenant.Name, errOvertaken.Error())
	}
	return nil
}

// add adds an object to the next transaction.
func (i *importer) add(ctx context.Context, record archive.Record) error {
	r := i.all.byName[record.Resource]
	if r == nil || r.expires {
		return apierrors.NewBadRequest(fmt.Sprintf("the file has objects of the resource %q, which tenants of this server do not have: start the server with the flags of the one that wrote the file (--kinds), or import with another release (the file is of %q)", record.Resource, i.from.Header.Server))
	}
	if r.namespaced != (record.Namespace != "") {
		return i.refusal(record, errors.New("it must have a namespace if and only if its resource is namespaced"))
	}
	name := r.place(record.Namespace, record.Name)
	stored, err := r.stored(record.Object, name)
	if err != nil {
		return i.refusal(record, err)
	}
	if record.Resource == archive.CRDs {
		if err := i.define(i.all, stored); err != nil {
			return i.refusal(record, err)
		}
	}
	key := i.prefix + r.folder + "/" + name
	sealed, err := r.transformer.TransformToStorage(ctx, stored, value.DefaultContext(key))
	if err != nil {
		return fmt.Errorf("encrypting %s %s: %w", record.Resource, name, err)
	}
	i.used.Keys++
	i.used.Bytes += int64(len(key) + len(sealed))
	if l := i.tenant.Limit; i.used.Keys > l.Keys || i.used.Bytes > l.Bytes {
		return apierrors.NewForbidden(Resource.GroupResource(), i.tenant.Name, fmt.Errorf(
			"the file has more than the tenant may have: %d objects and %d bytes of etcd; raise spec.objects or spec.storage of the tenant, and import again", l.Keys, l.Bytes))
	}
	if len(i.puts) == importKeys || i.size+len(sealed) > importBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.puts, i.size = append(i.puts, clientv3.OpPut(key, string(sealed))), i.size+len(key)+len(sealed)
	return nil
}

// refusal says which object is wrong.
func (i *importer) refusal(record archive.Record, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object %s %s/%s cannot be imported: %v; export the tenant again, or fix the object where it comes from", record.Resource, record.Namespace, record.Name, err))
}

// flush writes what was added.
func (i *importer) flush(ctx context.Context) error {
	if len(i.puts) == 0 {
		return nil
	}
	answer, err := i.etcd.Txn(ctx).If(i.claimed()).Then(i.puts...).Commit()
	switch {
	case store.TooLarge(err):
		return apierrors.NewRequestEntityTooLargeError("the file has an object that is larger than this etcd accepts; raise --max-request-bytes of etcd, and import again")
	case err != nil:
		return fmt.Errorf("writing objects to etcd: %w; import again", err)
	case !answer.Succeeded:
		return conflict(i.tenant.Name, errOvertaken.Error())
	}
	i.puts, i.size = i.puts[:0], 0
	return nil
}

// stored returns what etcd has of an object, before encryption.
func (r *resourceInfo) stored(data []byte, name string) ([]byte, error) {
	if r.builtin != nil {
		return r.builtin.Stored(data, name)
	}
	return r.custom(data, name)
}

// custom returns the JSON of a custom resource or CRD as etcd has it.
func (r *resourceInfo) custom(data []byte, name string) ([]byte, error) {
	o, err := request.DecodeForeign(bytes.TrimSpace(data))
	if err != nil {
		return nil, err
	}
	if gvk := o.GroupVersionKind(); gvk.Group != r.Group || gvk.Kind != r.kind {
		return nil, fmt.Errorf("it is of the kind %s, and not of %s.%s", gvk, r.kind, r.Group)
	}
	if is := r.place(o.GetNamespace(), o.GetName()); is != name || !r.namespaced && o.GetNamespace() != "" {
		return nil, fmt.Errorf("its name is %q, which differs from the key", is)
	}
	o.SetResourceVersion("")
	return append(o.AppendJSON(nil), '\n'), nil
}
