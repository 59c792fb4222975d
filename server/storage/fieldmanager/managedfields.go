package fieldmanager

import (
	"bytes"
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/server/stackgrow"
)

// ManagedFields writes the managed fields of objects that are created and updated
// where that needs no comparison of sets: the manager that creates an object owns all
// of it, and keeps owning all of it as long as no other manager writes. The field
// manager does the rest.
//
// It does so in the storage, after admission. Where admission plugins must see the
// managed fields, the field manager is used instead.
type ManagedFields struct {
	// Manager is for what takes comparing.
	Manager *managedfields.FieldManager

	plan   *plan.Node
	except []string // members at the root that such requests do not set
	scope  *handlers.RequestScope
	kind   schema.GroupVersionKind
}

// NewManagedFields returns a writer of managed fields for a scope. It replaces the
// FieldManager of the scope.
func NewManagedFields(scope *handlers.RequestScope, types managedfields.TypeConverter, n *plan.Node, except ...string) (*ManagedFields, error) {
	own := *scope
	// A field manager of a subresource takes the managed fields of the stored
	// object only, and one that finds none there does nothing.
	own.Subresource = "-"
	idle, err := Manager(types, &own, nil)
	if err != nil {
		return nil, err
	}
	own.Subresource, own.FieldManager = scope.Subresource, idle
	return &ManagedFields{Manager: scope.FieldManager, plan: n, except: except, scope: &own, kind: scope.Kind}, nil
}

// CreateScope is the scope of create requests. In it the field manager finds
// nothing to compare a new object with.
func (o *ManagedFields) CreateScope() *handlers.RequestScope {
	own := *o.scope
	own.Creater = withoutMetadata{own.Creater}
	return &own
}

// UpdateScope is the scope of update requests.
func (o *ManagedFields) UpdateScope() *handlers.RequestScope { return o.scope }

// withoutMetadata makes objects that have no metadata.
type withoutMetadata struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (withoutMetadata) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &metav1.Status{}, nil
}

// Creating returns the storage for one create request of a client that calls
// itself agent.
func (o *ManagedFields) Creating(s rest.Creater, agent string) rest.Creater {
	return &creating{Creater: s, managed: o, agent: agent}
}

type creating struct {
	rest.Creater
	managed *ManagedFields
	agent   string
	again   bool // the handlers try again without managed fields if an object is too large
}

// Create implements rest.Creater.
func (c *creating) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	stackgrow.Reserve() // the handlers have started a goroutine for it
	if o, ok := obj.(*object.Object); ok && !c.again {
		c.again = true
		c.managed.created(o, managerName(options.FieldManager, c.agent))
	}
	return c.Creater.Create(ctx, obj, validate, options)
}

// Updating returns the storage for one update request of a client that calls
// itself agent.
func (o *ManagedFields) Updating(s rest.Updater, agent string) rest.Updater {
	return &updating{Updater: s, managed: o, agent: agent}
}

type updating struct {
	rest.Updater
	managed *ManagedFields
	agent   string
	again   bool
}

// Update implements rest.Updater.
func (u *updating) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	stackgrow.Reserve() // the handlers have started a goroutine for it
	if !u.again {
		u.again = true
		info = &owned{UpdatedObjectInfo: info, managed: u.managed, manager: managerName(options.FieldManager, u.agent)}
	}
	return u.Updater.Update(ctx, name, info, create, update, forceAllowCreate, options)
}

// owned is a change that says who made it.
type owned struct {
	rest.UpdatedObjectInfo
	managed *ManagedFields
	manager string
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (w *owned) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	live, ok := old.(*object.Object)
	if !ok {
		return w.UpdatedObjectInfo.UpdatedObject(ctx, old)
	}
	updated, err := w.UpdatedObjectInfo.UpdatedObject(ctx, live.WithoutManagedFields())
	if now, ok := updated.(*object.Object); ok {
		w.managed.updated(live, now, w.manager)
	}
	return updated, err
}

// created writes that a manager owns all fields of a new object.
func (o *ManagedFields) created(obj *object.Object, manager string) {
	if checkFields(obj) != nil {
		obj.SetManagedFields(nil)
		return
	}
	if len(obj.GetManagedFields()) > 0 {
		o.compare(object.New(o.kind), obj, manager)
		return
	}
	obj.Settle()
	d, release, err := indexOf(obj)
	if err != nil {
		return // cannot be: it has been normalized
	}
	defer release()
	fields, ok := exec.AppendFields(make([]byte, 0, obj.Size()), o.plan, d, o.except...)
	if !ok {
		o.compare(object.New(o.kind), obj, manager)
		return
	}
	o.write(obj, fields, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: present()})
}

// updated writes who owns the fields of an object that was live and is now.
func (o *ManagedFields) updated(live, now *object.Object, manager string) {
	sent := now.ReadMetadata("managedFields")
	if checkFields(now) != nil {
		now.SetManagedFields(nil)
		return
	}
	if sent == nil || bytes.Equal(sent, live.ReadMetadata("managedFields")) {
		if o.stillAll(live, now, manager) {
			return
		}
	}
	now.RestoreManagedFields()
	o.compare(live, now, manager)
}

// compare leaves it to the field manager who owns what. An object that is too large
// for that has no managed fields, see [Updating].
func (o *ManagedFields) compare(live, now *object.Object, manager string) {
	if checkFields(live) != nil || checkFields(now) != nil {
		now.SetManagedFields(nil)
		return
	}
	o.Manager.UpdateNoErrors(live, now, manager)
}

// stillAll is updated for an object that has one manager, who owns all of it
// and has made the change. It reports false if that is not so.
func (o *ManagedFields) stillAll(live, now *object.Object, manager string) bool {
	entries := live.GetManagedFields()
	if len(entries) != 1 {
		return false
	}
	e := entries[0]
	if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationUpdate || e.Subresource != "" ||
		e.APIVersion != o.kind.GroupVersion().String() || e.FieldsType != "FieldsV1" {
		return false
	}
	before, err := jsondoc.Parse(live.JSON(), jsondoc.Limits{})
	if err != nil {
		return false
	}
	defer before.Release()
	had, ok := exec.AppendFields(nil, o.plan, before, o.except...)
	if !ok || !bytes.Equal(had, e.FieldsV1.GetRawBytes()) {
		return false
	}
	settled := *now // now itself still knows what was read
	settled.Settle()
	after, release, err := indexOf(&settled)
	if err != nil {
		return false
	}
	defer release()
	has, ok := exec.AppendFields(had[len(had):], o.plan, after, o.except...)
	if !ok {
		return false
	}
	if !exec.FieldsKept(o.plan, before, after, o.except...) {
		e.Time = present() // as the field manager does: not if fields were only removed
	}
	o.write(now, has, e)
	return true
}

// indexOf returns the index of an object, and what has to be called when it is no longer used.
func indexOf(obj *object.Object) (*jsondoc.Doc, func(), error) {
	if d, _ := obj.Index(); d != nil {
		return d, func() {}, nil
	}
	d, err := jsondoc.Parse(obj.JSON(), jsondoc.Limits{})
	if err != nil {
		return nil, nil, err
	}
	return d, d.Release, nil
}

// write sets the one entry of an object.
func (o *ManagedFields) write(obj *object.Object, fields []byte, e metav1.ManagedFieldsEntry) {
	if string(fields) == "{}" {
		obj.SetManagedFields(nil)
		return
	}
	e.APIVersion, e.FieldsType, e.FieldsV1 = o.kind.GroupVersion().String(), "FieldsV1", &metav1.FieldsV1{}
	e.FieldsV1.SetRawBytes(fields)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{e})
}

func present() *metav1.Time { return &metav1.Time{Time: time.Now().UTC()} }

// managerName is what a client calls itself: in the options, or up to the first
// slash of its user agent.
func managerName(option, agent string) string {
	if option != "" {
		return option
	}
	agent, _, _ = strings.Cut(agent, "/")
	name := strings.Builder{}
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if name.Len()+utf8.RuneLen(r) > maxManager {
			break
		}
		name.WriteRune(r)
	}
	return name.String()
}

// maxManager is the most bytes that the name of a manager has.
const maxManager = 128
