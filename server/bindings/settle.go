package bindings

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// result is what the condition Ready of a binding says.
type result struct {
	reason   string // empty while all resources are served
	problems []string
	served   []string
	provider string
}

func (v *result) problem(reason, format string, args ...any) {
	if v.reason == "" {
		v.reason = reason
	}
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// settle binds what a binding asks for, or unbinds it if it is being deleted.
func (b *Binder) settle(ctx context.Context, r *round, x *Binding) error {
	if x.GetDeletionTimestamp() != nil {
		return b.remove(ctx, r, x)
	}
	if !slices.Contains(x.GetFinalizers(), Finalizer) {
		x.SetFinalizers(append(x.GetFinalizers(), Finalizer))
		updated, err := b.Client.Resource(Bindings).Update(ctx, x.Unstructured, metav1.UpdateOptions{})
		if err != nil {
			return ignore(err)
		}
		x.Unstructured = updated
	}
	provider := ahead(func() (located, error) { return b.locate(ctx, x.Spec.Export.Tenant) })
	if err := b.regrant(ctx, r, x); err != nil {
		return err
	}
	v := &result{}
	if err := b.bind(ctx, r, x, v, provider); err != nil {
		return err
	}
	return b.tell(ctx, x, v)
}

// grantsAtOnce is how many grants one request reads. etcd bounds the reads of a transaction.
const grantsAtOnce = 50

// regrant has the provider find what a binding accepts now. It comes before anything that depends on
// the provider: what is taken back must not wait until the export allows the binding again.
func (b *Binder) regrant(ctx context.Context, r *round, x *Binding) error {
	var notes []tenants.Bound
	for _, note := range r.notes {
		if note.UID == x.GetUID() {
			notes = append(notes, note)
		}
	}
	for some := range slices.Chunk(notes, grantsAtOnce) {
		// Mostly all are as they should be, and one request shows it.
		var reads []clientv3.Op
		for _, note := range some {
			of := tenants.SharedBy(b.Prefix, note.Provider)
			reads = append(reads, clientv3.OpGet(of.Guard(), clientv3.WithCountOnly()), clientv3.OpGet(of.Grant(note.Resource, b.Tenant.UID)))
		}
		answer, err := b.etcd.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return err
		}
		for i, note := range some {
			if answer.Responses[2*i].GetResponseRange().Count == 0 {
				continue // what the provider has found is gone with it
			}
			value, err := json.Marshal(grantOf(b.Tenant.Name, x, note.Resource))
			if err != nil {
				return err
			}
			if found := answer.Responses[2*i+1].GetResponseRange().Kvs; len(found) > 0 && string(found[0].Value) == string(value) {
				continue
			}
			done, _, err := b.grant(ctx, x, note.Resource, note.Provider, true)
			if err != nil {
				return err
			}
			r.busy = r.busy || !done
		}
	}
	return nil
}

// ignore drops errors after which the watch brings another look.
func ignore(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// bind serves the resources of a binding. Whatever the provider has not allowed is answered in one
// way: a tenant does not learn which tenants and exports there are. find returns the provider.
func (b *Binder) bind(ctx context.Context, r *round, x *Binding, v *result, find func() (located, error)) error {
	want := x.Spec.Export
	refuse := func() error {
		v.problem("NotFound", "there is no export %q of a tenant %q that this tenant may bind", want.Name, want.Tenant)
		return nil
	}
	found, err := find()
	provider := found.Tenant
	switch {
	case apierrors.IsNotFound(err), err == nil && provider.UID == b.Tenant.UID:
		return refuse()
	case err != nil:
		return err
	}
	if name(provider.Etcd) != name(b.Tenant.Etcd) {
		var allowed bool
		if allowed, err = b.allowed(ctx, r, provider, want.Name); err != nil || !allowed {
			return cmpErr(err, refuse)
		}
		v.problem("OtherEtcd", "the tenant %q is in another etcd: a tenant can only bind APIs of tenants that are in the etcd %q, as this one is", want.Tenant, name(b.Tenant.Etcd))
		return nil
	}
	if b.lenders[provider.UID] == nil {
		// To name a tenant must not be enough to have its CRDs read: of each tenant that there is.
		allowed, err := b.allowed(ctx, r, provider, want.Name)
		if err != nil || !allowed {
			r.refused = true
			return cmpErr(err, refuse)
		}
	}
	lender, err := b.lender(provider.UID)
	if err != nil {
		return err
	}
	exported := ahead(func() (*Export, error) { return lender.export(ctx, want.Name) }) // while its CRDs are read
	if err := lender.awaitRead(ctx); err != nil {
		return err
	}
	export, err := exported()
	if err != nil {
		return err
	}
	if export == nil || !export.Consumers.Has(b.Tenant.Name, r.labels) {
		r.refused = true
		return refuse()
	}
	r.uses[provider.UID] = true
	if provider.Revisions.Offset != 0 || b.Tenant.Revisions.Offset != 0 {
		// One watch over several tenants needs one order of revisions.
		v.problem("Moved", "this tenant or the tenant %q was moved between etcds: such tenants cannot share APIs", want.Tenant)
		return nil
	}
	v.provider = string(provider.UID)
	for _, crd := range export.Resources {
		if err := b.serve(ctx, r, x, v, lender, provider, crd); err != nil {
			return err
		}
	}
	for resource, note := range r.notes {
		if note.UID == x.GetUID() && !slices.Contains(export.Resources, resource.String()) {
			v.problem("NotExported", "%s is no longer exported: its objects stay until it is again, or this APIBinding is deleted", resource)
		}
	}
	return nil
}

// cmpErr returns an error, or calls a function if there is none.
func cmpErr(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// name is that of an etcd for people.
func name(etcd string) string {
	if etcd == "" {
		return tenants.RootEtcd
	}
	return etcd
}

// allowed reports whether a provider allows the binding, in whichever etcd it is.
func (b *Binder) allowed(ctx context.Context, r *round, provider tenants.Tenant, export string) (allowed bool, err error) {
	err = b.Where.Peek(ctx, provider, func(etcd *store.Backend) error {
		x := &lender{backend: etcd.Within(store.Part{Prefix: tenants.Prefix(b.Prefix, provider.UID), Guard: tenants.Guard(b.Prefix, provider.UID)})}
		found, err := x.export(ctx, export)
		allowed = found != nil && found.Consumers.Has(b.Tenant.Name, r.labels)
		return err
	})
	return allowed, err
}

// serve serves one resource, if nothing is in the way.
func (b *Binder) serve(ctx context.Context, r *round, x *Binding, v *result, from *lender, provider tenants.Tenant, crd string) error {
	resource := resourceOf(crd)
	e := from.catalog.Get(crd)
	note, noted := r.notes[resource]
	own := b.Catalog.Get(crd)
	switch {
	case b.BuiltIn(resource.Group):
		// What the binding accepts would be accepted for the objects of the server's own resource.
		v.problem("BuiltIn", "%s: the server has resources of its own in this group", crd)
		return nil
	case e == nil || !e.Established || e.Deleting:
		v.problem("NotServed", "%s: the provider does not serve it", crd)
		return nil
	case e.Conversion == "Webhook":
		v.problem("Webhook", "%s: the provider converts it with a webhook, which would see the objects; it must use conversion rules", crd)
		return nil
	case noted && note.UID != x.GetUID():
		v.problem("Conflict", "%s: the APIBinding %s has bound it", crd, note.Binding)
		return nil
	case noted && note.Provider != provider.UID:
		v.problem("ProviderGone", "%s: the objects are of a former tenant %s: delete this APIBinding, and create it again", crd, provider.Name)
		return nil
	case own != nil && own.Loan == nil:
		v.problem("Conflict", "%s: this tenant has a CustomResourceDefinition of its own with this name", crd)
		return nil
	}
	if other := b.taken(e); other != "" {
		v.problem("Conflict", "%s: the CustomResourceDefinition %s of this tenant has one of its names", crd, other)
		return nil
	}
	at := note.Revision
	if !noted {
		done, revision, err := b.grant(ctx, x, resource, provider.UID, false)
		if err != nil {
			return err
		}
		if !done {
			r.busy = true // the next look finds what has changed
			v.problem("Pending", "%s: it is being bound", crd)
			return nil
		}
		at = revision
	}
	shared := tenants.SharedBy(b.Prefix, provider.UID)
	b.Writes.set(resource, &bound{by: shared})
	if !b.Catalog.Lend(b.shown(e, from, at)) {
		r.busy = true
		return nil
	}
	b.lent[crd], r.serves[crd] = provider.UID, provider.UID
	v.served = append(v.served, crd)
	return nil
}

// shown is an entry of a provider as the tenant shows it, with the revision of the note of it.
func (b *Binder) shown(e *catalog.Entry, from *lender, note int64) *catalog.Entry {
	return e.Lent(&catalog.Loan{
		Key: from.backend.Key(catalog.Key + "/" + e.Name), From: from.catalog,
		Note: tenants.BoundKey(b.Prefix, b.Tenant.UID, resourceOf(e.Name)), NoteRevision: note,
	})
}

// taken returns another CRD of the tenant that has one of the names of an entry.
func (b *Binder) taken(e *catalog.Entry) (by string) {
	b.Catalog.View(e.Group, func(claims catalog.Claims) {
		for _, s := range []catalog.Space{catalog.Resources, catalog.Kinds} {
			for name := range e.Accepted.All(s) {
				for _, other := range claims.On(s, name) {
					if other.Name != e.Name {
						by = other.Name
					}
				}
			}
		}
	})
	return by
}

// grant writes what a binding accepts to where the provider finds it, and the note that it has done
// so, which it returns the revision of if there was none. It returns false if something has changed
// meanwhile.
//
// The conditions are all that the binding depends on: both tenants exist, the APIBinding is as it
// was read, and the tenant has no CRD of the name. So whatever is deleted meanwhile stays deleted.
func (b *Binder) grant(ctx context.Context, x *Binding, r schema.GroupResource, provider types.UID, noted bool) (done bool, revision int64, err error) {
	of := tenants.SharedBy(b.Prefix, provider)
	key := of.Grant(r, b.Tenant.UID)
	value, err := json.Marshal(grantOf(b.Tenant.Name, x, r))
	if err != nil {
		return false, 0, err
	}
	found, err := b.etcd.Get(ctx, key)
	if err != nil {
		return false, 0, err
	}
	var before int64
	if len(found.Kvs) > 0 {
		if before = found.Kvs[0].ModRevision; noted && string(found.Kvs[0].Value) == string(value) {
			return true, 0, nil
		}
	}
	note, err := json.Marshal(tenants.Bound{Provider: provider, Binding: x.GetName(), UID: x.GetUID()})
	if err != nil {
		return false, 0, err
	}
	read, err := revisionOf(x.Unstructured)
	if err != nil {
		return false, 0, err
	}
	noteKey := tenants.BoundKey(b.Prefix, b.Tenant.UID, r)
	conditions := []clientv3.Cmp{
		of.Served(),
		clientv3.Compare(clientv3.ModRevision(b.Backend.Key(bindingsFolder+"/"+x.GetName())), "=", read),
		clientv3.Compare(clientv3.ModRevision(key), "=", before),
	}
	ops := []clientv3.Op{clientv3.OpPut(key, string(value))}
	if !noted {
		folder := b.folder(r)
		conditions = append(conditions,
			clientv3.Compare(clientv3.CreateRevision(b.Backend.Key(catalog.Key+"/"+r.String())), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(noteKey), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(folder), "=", 0).WithRange(clientv3.GetPrefixRangeEnd(folder)))
		ops = append(ops, clientv3.OpPut(noteKey, string(note)))
	}
	answer, err := b.etcd.Txn(ctx).If(conditions...).Then(ops...).Commit()
	if err != nil {
		return false, 0, err
	}
	return answer.Succeeded, answer.Header.Revision, nil
}

// folder has the objects of a resource.
func (b *Binder) folder(r schema.GroupResource) string {
	return b.Backend.Key("/"+r.Group+"/"+r.Resource) + "/"
}

func revisionOf(o *unstructured.Unstructured) (n int64, err error) {
	_, err = fmt.Sscan(o.GetResourceVersion(), &n)
	return n, err
}

// remove unbinds what a binding has bound that is being deleted, and then lets it go.
func (b *Binder) remove(ctx context.Context, r *round, x *Binding) error {
	if !slices.Contains(x.GetFinalizers(), Finalizer) {
		return nil
	}
	left := false
	for _, note := range r.notes {
		if note.UID != x.GetUID() {
			continue
		}
		if err := b.release(ctx, r, note); err != nil {
			return err
		}
		_, still := r.notes[note.Resource]
		left = left || still
	}
	if left {
		v := &result{}
		v.problem("Deleting", "objects of its resources wait for their finalizers")
		return b.tell(ctx, x, v)
	}
	x.SetFinalizers(slices.DeleteFunc(x.GetFinalizers(), func(f string) bool { return f == Finalizer }))
	_, err := b.Client.Resource(Bindings).Update(ctx, x.Unstructured, metav1.UpdateOptions{})
	return ignore(err)
}

// release deletes the objects of a bound resource, and then the binding of it. Their finalizers
// hold it up, as long as the provider and its CRD are there: otherwise no controller takes them off.
func (b *Binder) release(ctx context.Context, r *round, note tenants.Bound) error {
	of := tenants.SharedBy(b.Prefix, note.Provider)
	guard, err := b.etcd.Get(ctx, of.Guard(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	alive := false
	if guard.Count > 0 {
		lender, err := b.lender(note.Provider)
		if err != nil {
			return err
		}
		if err := lender.awaitRead(ctx); err != nil {
			return err
		}
		r.uses[note.Provider] = true
		// A webhook of the provider would see the objects, even while they are deleted.
		if e := lender.catalog.Get(note.Resource.String()); e != nil && e.Established && e.Conversion != "Webhook" {
			shown := b.shown(e, lender, note.Revision)
			if b.Catalog.Lend(shown) { // so that controllers of both sides can end their work
				b.lent[e.Name], r.serves[e.Name] = note.Provider, note.Provider
			}
			alive = true
			remaining, err := b.Objects.DeleteInstances(ctx, shown)
			if err != nil || remaining > 0 {
				r.busy = true
				return err
			}
		}
	}
	if !alive {
		b.Catalog.Withdraw(note.Resource.String())
		for _, folder := range []string{of.Mark(note.Resource, b.Tenant.UID, ""), b.folder(note.Resource)} { // marks first: watches of the provider read what goes
			if done, err := b.empty(ctx, folder, note); err != nil || !done {
				r.busy = true
				return err
			}
		}
	}
	done, err := b.unbind(ctx, of, note)
	if err != nil || !done {
		r.busy = true
		return err
	}
	delete(r.notes, note.Resource)
	delete(r.serves, note.Resource.String())
	b.Catalog.Withdraw(note.Resource.String())
	delete(b.lent, note.Resource.String())
	b.Writes.set(note.Resource, nil)
	return nil
}

// unbind deletes the grant and the note, if there are no objects. It returns false if there are.
func (b *Binder) unbind(ctx context.Context, of tenants.Shared, note tenants.Bound) (bool, error) {
	marks, folder := of.Mark(note.Resource, b.Tenant.UID, ""), b.folder(note.Resource)
	noteKey := tenants.BoundKey(b.Prefix, b.Tenant.UID, note.Resource)
	answer, err := b.etcd.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(noteKey), "=", note.Revision),
		clientv3.Compare(clientv3.CreateRevision(folder), "=", 0).WithRange(clientv3.GetPrefixRangeEnd(folder)),
		clientv3.Compare(clientv3.CreateRevision(marks), "=", 0).WithRange(clientv3.GetPrefixRangeEnd(marks)),
	).Then(clientv3.OpDelete(of.Grant(note.Resource, b.Tenant.UID)), clientv3.OpDelete(noteKey)).Commit()
	return err == nil && answer.Succeeded, err
}

// emptied is how many keys one transaction deletes.
const emptied = 1000

// empty deletes what is in a folder. It returns false if the note is no longer there as it was read: another replica has done so,
// and what is in the folder now may be of another binding.
func (b *Binder) empty(ctx context.Context, folder string, note tenants.Bound) (bool, error) {
	same := clientv3.Compare(clientv3.ModRevision(tenants.BoundKey(b.Prefix, b.Tenant.UID, note.Resource)), "=", note.Revision)
	for {
		page, err := b.etcd.Get(ctx, folder, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(emptied))
		if err != nil || len(page.Kvs) == 0 {
			return err == nil, err
		}
		last := string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		answer, err := b.etcd.Txn(ctx).If(same).Then(clientv3.OpDelete(folder, clientv3.WithRange(last))).Commit()
		if err != nil || !answer.Succeeded {
			return false, err
		}
	}
}

// tell writes the status of a binding, if it has changed.
func (b *Binder) tell(ctx context.Context, x *Binding, v *result) error {
	state, reason, message := "True", "Bound", fmt.Sprintf("%d resources are served", len(v.served))
	if v.reason != "" {
		state, reason, message = "False", v.reason, strings.Join(v.problems[:min(len(v.problems), mostProblems)], "; ")
	}
	condition := map[string]any{"type": "Ready", "status": state, "reason": reason, "message": message, "observedGeneration": x.GetGeneration()}
	slices.Sort(v.served)
	before, _, _ := unstructured.NestedMap(x.Object, "status")
	old := conditionOf(before)
	if old["status"] == state {
		condition["lastTransitionTime"] = old["lastTransitionTime"]
	} else {
		condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	}
	was, _, _ := unstructured.NestedStringSlice(before, "resources")
	same := slices.Equal(was, v.served)
	for key, value := range condition {
		same = same && fmt.Sprint(old[key]) == fmt.Sprint(value)
	}
	if same {
		return nil
	}
	status := map[string]any{"conditions": []any{condition}}
	if v.provider != "" {
		status["provider"] = v.provider
	}
	served := make([]any, len(v.served))
	for i, s := range v.served {
		served[i] = s
	}
	status["resources"] = served
	x.Object["status"] = status
	_, err := b.Client.Resource(Bindings).UpdateStatus(ctx, x.Unstructured, metav1.UpdateOptions{})
	return ignore(err)
}

// mostProblems bounds a message.
const mostProblems = 5

func conditionOf(status map[string]any) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return c
		}
	}
	return nil
}
