package fieldmanager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// storing is a storage that writes what it gets, or fails.
type storing struct {
	rest.Creater
	rest.Updater
	live runtime.Object
	err  error
}

func (s *storing) New() runtime.Object { return nil }

func (s *storing) Create(_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, s.err
}

func (s *storing) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := info.UpdatedObject(ctx, s.live)
	if err == nil {
		err = s.err
	}
	return obj, false, err
}

// newManaged returns a writer of managed fields of widgets, whose status is set by a
// subresource, and the field manager that it leaves the rest to.
func newManaged(t *testing.T) (*fieldmanager.ManagedFields, *managedfields.FieldManager) {
	t.Helper()
	types, m := manager(t)
	s, err := espalier.Compile([]byte(`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},
		"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"size":{"type":"number"}}}}}},
		"status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}`), espalier.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scope := &handlers.RequestScope{Convertor: asIs{}, Defaulter: asIs{}, Creater: asIs{}, Kind: gvk, HubGroupVersion: gvk.GroupVersion(), FieldManager: m}
	managed, err := fieldmanager.NewManagedFields(scope, types, bridge.Plan(s), "status")
	if err != nil {
		t.Fatal(err)
	}
	if managed.Manager != m || scope.FieldManager != m || managed.UpdateScope().FieldManager == m || managed.UpdateScope().Subresource != "" {
		t.Error("the scopes of requests have the wrong field manager")
	}
	return managed, m
}

// reread is an object as it is after it was sent, or read from etcd.
func reread(t *testing.T, o *object.Object) *object.Object {
	t.Helper()
	again, err := object.FromJSON(o.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

var longAgo = metav1.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// said is what managed fields say, and whether their time is new.
func said(o *object.Object) string {
	var b strings.Builder
	for _, e := range o.GetManagedFields() {
		fmt.Fprintf(&b, "%s %s %s %s %s %s new %v\n", e.Manager, e.Operation, e.APIVersion, e.Subresource, e.FieldsType, e.FieldsV1.GetRawBytes(), e.Time != nil && !e.Time.Equal(&longAgo))
	}
	return b.String()
}

const (
	small = "metadata: {name: a, labels: {x: z}}\nspec: {a: b, list: [{name: one, size: 1.5}]}\nstatus: {ready: true}"
	other = "metadata: {name: a, labels: {x: z}}\nspec: {a: c, list: [{name: one, size: 1.5}]}\nstatus: {ready: true}"
	less  = "metadata: {name: a, labels: {x: z}}\nspec: {a: b}\nstatus: {ready: true}"
	twice = "metadata: {name: a}\nspec: {list: [{name: one}, {name: one}]}"
)

// The manager that creates an object owns all of it, as the field manager says.
func TestCreating(t *testing.T) {
	managed, m := newManaged(t)
	for name, c := range map[string]struct {
		text    string
		compare bool // it takes the field manager
		sent    []metav1.ManagedFieldsEntry
	}{
		"an object":          {small, false, nil},
		"nothing but a name": {"metadata: {name: a}", false, nil},
		"only a status":      {"metadata: {name: a}\nstatus: {ready: true}", false, nil},
		"duplicates":         {twice, true, nil},
		"managed fields": {small, true, []metav1.ManagedFieldsEntry{{
			Manager: "before", Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`), Time: &longAgo,
		}}},
	} {
		o, want := read(t, c.text), read(t, c.text)
		o.SetManagedFields(c.sent)
		o = reread(t, o)
		want.SetManagedFields(c.sent)
		m.UpdateNoErrors(object.New(gvk), want, "kubectl")
		if managed.Manager = m; !c.compare {
			managed.Manager = nil // it would panic
		}
		s := managed.Creating(&storing{}, "kubectl/v1.37 (linux)")
		if _, err := s.Create(t.Context(), o, nil, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := said(o); got != said(want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, said(want))
		}
		// The handlers try again without managed fields if an object is too large for etcd.
		o.SetManagedFields(nil)
		if _, err := s.Create(t.Context(), o, nil, &metav1.CreateOptions{}); err != nil || said(o) != "" {
			t.Errorf("%s, again: %s, %v", name, said(o), err)
		}
	}
	failure := errors.New("full")
	if _, err := managed.Creating(&storing{err: failure}, "a").Create(t.Context(), &metav1.Status{}, nil, &metav1.CreateOptions{}); !errors.Is(err, failure) {
		t.Error(err)
	}
	named := read(t, small)
	if _, err := managed.Creating(&storing{}, "agent").Create(t.Context(), named, nil, &metav1.CreateOptions{FieldManager: "me"}); err != nil || named.GetManagedFields()[0].Manager != "me" {
		t.Errorf("%s, %v", said(named), err)
	}
	if since := time.Since(named.GetManagedFields()[0].Time.Time); since < 0 || since > time.Hour {
		t.Errorf("the time is %v", named.GetManagedFields()[0].Time)
	}
	obj, err := managed.CreateScope().Creater.New(gvk)
	if _, ok := obj.(*metav1.Status); !ok || err != nil {
		t.Errorf("the field manager has something to compare with: %T, %v", obj, err)
	}
}

// An object that has the index of its bytes has the same managed fields.
func TestCreatingWithIndex(t *testing.T) {
	managed, _ := newManaged(t)
	managed.Manager = nil // it would panic
	var got []string
	for _, index := range []bool{false, true} {
		o := reread(t, read(t, small))
		if index {
			d, err := jsondoc.Parse(o.JSON(), jsondoc.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			o.SetIndex(d, nil, nil)
			if d, _ := o.Index(); d == nil {
				t.Fatal("it has no index")
			}
		}
		if _, err := managed.Creating(&storing{}, "kubectl").Create(t.Context(), o, nil, &metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got = append(got, said(o))
	}
	if got[0] != got[1] || got[0] == "" {
		t.Errorf("without an index %s, with it %s", got[0], got[1])
	}
}

// A manager keeps owning all of an object as long as no other writes; all else is what
// the field manager says.
func TestUpdating(t *testing.T) {
	managed, m := newManaged(t)
	all := func(change func(*metav1.ManagedFieldsEntry)) []metav1.ManagedFieldsEntry {
		o := read(t, small)
		m.UpdateNoErrors(object.New(gvk), o, "kubectl")
		e := o.GetManagedFields()[0]
		e.Time = &longAgo
		if change != nil {
			change(&e)
		}
		return []metav1.ManagedFieldsEntry{e}
	}
	second := metav1.ManagedFieldsEntry{Manager: "z", Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`), Time: &longAgo}
	for _, c := range []struct {
		name, by, to string
		before       []metav1.ManagedFieldsEntry
		sent         func(live []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
		compare      bool
	}{
		{"nothing changed", "kubectl", small, all(nil), nil, false},
		{"changed", "kubectl", other, all(nil), nil, false},
		{"only removed", "kubectl", less, all(nil), nil, false},
		{"all removed", "kubectl", "metadata: {name: a}", all(nil), nil, false},
		{"sent as they were", "kubectl", other, all(nil), func(live []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return live }, false},
		{"sent otherwise", "kubectl", other, all(nil), func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return []metav1.ManagedFieldsEntry{second}
		}, true},
		{"duplicates", "kubectl", twice, all(nil), nil, true},
		{"by another", "other", other, all(nil), nil, true},
		{"of two", "kubectl", other, append(all(nil), second), nil, true},
		{"of none", "kubectl", other, nil, nil, true},
		{"applied", "kubectl", other, all(func(e *metav1.ManagedFieldsEntry) { e.Operation = "Apply" }), nil, true},
		{"of a subresource", "kubectl", other, all(func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" }), nil, true},
		{"of another version", "kubectl", other, all(func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "example.com/v2" }), nil, true},
		{"of another form", "kubectl", other, all(func(e *metav1.ManagedFieldsEntry) { e.FieldsType = "FieldsV2" }), nil, true},
		{"of less than all", "kubectl", other, all(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`) }), nil, true},
	} {
		live := read(t, small)
		live.SetManagedFields(c.before)
		live.SetUID("1")
		live = reread(t, live)
		next := func() *object.Object {
			o := read(t, c.to)
			o.SetUID("1")
			if c.sent != nil {
				o.SetManagedFields(c.sent(c.before))
			}
			return reread(t, o)
		}
		want := next()
		if c.sent == nil {
			want.SetManagedFields(c.before)
		}
		m.UpdateNoErrors(live, want, c.by)
		if managed.Manager = m; !c.compare {
			managed.Manager = nil // it would panic
		}
		before := said(live)
		s := managed.Updating(&storing{live: live}, c.by)
		var given string
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			given = said(old.(*object.Object))
			o := next()
			if c.sent == nil {
				// As the handlers do for a body without them.
				o.SetManagedFields(old.(*object.Object).GetManagedFields())
			}
			return o, nil
		})
		got, _, err := s.Update(t.Context(), "a", info, nil, nil, false, &metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := said(got.(*object.Object)); got != said(want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, said(want))
		}
		if said(live) != before {
			t.Errorf("%s: the live object has changed", c.name)
		}
		if given != "" {
			t.Errorf("%s: handlers copy managed fields: %s", c.name, given)
		}
	}
	// A manager that the request names is the one, not the client's name.
	change := rest.DefaultUpdatedObjectInfo(nil, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) {
		return read(t, other), nil
	})
	managed.Manager = m
	named, _, err := managed.Updating(&storing{live: read(t, small)}, "agent").Update(t.Context(), "a", change, nil, nil, false, &metav1.UpdateOptions{FieldManager: "me"})
	if err != nil || !strings.Contains(said(named.(*object.Object)), "me") || strings.Contains(said(named.(*object.Object)), "agent") {
		t.Errorf("%v, %v", named, err)
	}
	// What fails, and what is no object, is left alone.
	failure := errors.New("refused")
	refuse := rest.DefaultUpdatedObjectInfo(nil, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) {
		return read(t, small), failure
	})
	if _, _, err := managed.Updating(&storing{live: read(t, small)}, "a").Update(t.Context(), "a", refuse, nil, nil, false, &metav1.UpdateOptions{}); !errors.Is(err, failure) {
		t.Error(err)
	}
	pass := rest.DefaultUpdatedObjectInfo(&metav1.Status{Message: "m"})
	if got, _, err := managed.Updating(&storing{live: &metav1.Status{}}, "a").Update(t.Context(), "a", pass, nil, nil, false, &metav1.UpdateOptions{}); err != nil || got.(*metav1.Status).Message != "m" {
		t.Errorf("%v, %v", got, err)
	}
}

// Objects that are too large to be compared have no managed fields.
func TestLargeObjects(t *testing.T) {
	managed, m := newManaged(t)
	large := func() *object.Object {
		o := read(t, small)
		o.SetMember("spec", []byte(`{"list":[`+strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, fieldmanager.MaxFields), ",")+`]}`))
		return o
	}
	some := []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	managed.Manager = m
	o := large()
	o.SetManagedFields(some)
	if _, err := managed.Creating(&storing{}, "kubectl").Create(t.Context(), o, nil, &metav1.CreateOptions{}); err != nil || said(o) != "" {
		t.Errorf("created: %s, %v", said(o), err)
	}
	for name, c := range map[string]struct{ live, now *object.Object }{
		"large now":    {read(t, small), large()},
		"large before": {large(), read(t, small)},
	} {
		c.live.SetManagedFields(some)
		got, _, err := managed.Updating(&storing{live: c.live}, "kubectl").Update(t.Context(), "a", rest.DefaultUpdatedObjectInfo(c.now), nil, nil, false, &metav1.UpdateOptions{})
		if err != nil || said(got.(*object.Object)) != "" {
			t.Errorf("%s: %s, %v", name, said(got.(*object.Object)), err)
		}
	}
	// The same holds for storages that the field manager has been asked for before.
	now := large()
	now.SetManagedFields(some)
	got, _, err := fieldmanager.Updating(&storing{live: read(t, small)}).Update(t.Context(), "a", rest.DefaultUpdatedObjectInfo(now), nil, nil, false, &metav1.UpdateOptions{})
	if err != nil || said(got.(*object.Object)) != "" {
		t.Errorf("updated: %s, %v", said(got.(*object.Object)), err)
	}
	types, _ := manager(t)
	if _, err := types.ObjectToTyped(large()); err == nil || !strings.HasPrefix(err.Error(), "server-side apply is limited to ") {
		t.Errorf("converted: %v", err)
	}
}

// broken is a converter of types that makes something else of a typed value, or fails.
type broken struct {
	managedfields.TypeConverter
	obj runtime.Object
	err error
}

func (b broken) TypedToObject(*typed.TypedValue) (runtime.Object, error) { return b.obj, b.err }

func (b broken) ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return nil, b.err
}

func TestConvertersThatFail(t *testing.T) {
	failure := errors.New("no type")
	types := fieldmanager.Converter(broken{err: failure})
	if obj, err := types.TypedToObject(nil); obj != nil || !errors.Is(err, failure) {
		t.Errorf("%v, %v", obj, err)
	}
	for _, obj := range []runtime.Object{read(t, small), patch(t, small)} {
		if v, err := types.ObjectToTyped(obj); v != nil || !errors.Is(err, failure) {
			t.Errorf("%T: %v, %v", obj, v, err)
		}
	}
	if obj, err := fieldmanager.Converter(broken{obj: &metav1.Status{}}).TypedToObject(nil); obj != nil || err == nil || err.Error() != "an object of type *v1.Status where a map was expected" {
		t.Errorf("%v, %v", obj, err)
	}
}

// tooLarge is a storage in which an apply is refused by the limit, or for something else.
type tooLarge struct {
	rest.Patcher
	err error
}

func (s tooLarge) Update(context.Context, string, rest.UpdatedObjectInfo, rest.ValidateObjectFunc, rest.ValidateObjectUpdateFunc, bool, *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return nil, true, s.err
}

func TestRefusedPatches(t *testing.T) {
	const limit = "server-side apply is limited to 20000 fields"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"the limit":      {errors.New("failed to create typed patch: " + limit), limit},
		"something else": {errors.New("x"), "x"},
		"nothing":        {nil, ""},
	} {
		_, created, err := fieldmanager.Patching(tooLarge{err: c.err}).Update(t.Context(), "a", nil, nil, nil, false, nil)
		if got := fmt.Sprint(err); !created || (err == nil) != (c.err == nil) || err != nil && !strings.HasSuffix(got, c.want) || name == "the limit" && !strings.HasPrefix(got, "Request entity too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// decoding is a serializer that decodes to one object.
type decoding struct {
	runtime.NegotiatedSerializer
	runtime.Decoder
	obj runtime.Object
}

func (d decoding) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder { return d }

func (d decoding) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return d.obj, &gvk, errStrict
}

var errStrict = errors.New("unknown field")

// Requests with too many managed fields count as without them.
func TestCheckedSerializer(t *testing.T) {
	fields := func(n int) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":[` + strings.TrimSuffix(strings.Repeat("10000,", n-1), ",") + `]}`)}}
	}
	for name, c := range map[string]struct {
		n, size int // of fields, and of the body
		kept    bool
	}{
		"few":                 {10, 4 * fieldmanager.MaxFields, true},
		"as many as may be":   {fieldmanager.MaxFields, 4 * fieldmanager.MaxFields, true},
		"too many":            {fieldmanager.MaxFields + 1, 4 * fieldmanager.MaxFields, false},
		"of a body too small": {fieldmanager.MaxFields + 1, 4*fieldmanager.MaxFields - 1, true},
	} {
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: fields(c.n)}}
		s := fieldmanager.CheckedSerializer(decoding{obj: obj})
		got, kind, err := s.DecoderToVersion(nil, nil).Decode(make([]byte, c.size), nil, nil)
		if got != runtime.Object(obj) || *kind != gvk || !errors.Is(err, errStrict) || (len(obj.ManagedFields) > 0) != c.kept {
			t.Errorf("%s: %d managers, %v", name, len(obj.ManagedFields), err)
		}
	}
	if got, _, err := fieldmanager.CheckedSerializer(decoding{}).DecoderToVersion(nil, nil).Decode(make([]byte, 4*fieldmanager.MaxFields), nil, nil); got != nil || !errors.Is(err, errStrict) {
		t.Errorf("nothing: %v, %v", got, err)
	}
	if got, _, err := fieldmanager.CheckedSerializer(decoding{obj: &metav1.Status{}}).DecoderToVersion(nil, nil).Decode(make([]byte, 4*fieldmanager.MaxFields), nil, nil); got == nil || !errors.Is(err, errStrict) {
		t.Errorf("without managed fields: %v, %v", got, err)
	}
}

func TestDropUnreadable(t *testing.T) {
	for fields, kept := range map[string]bool{`{"f:spec":{}}`: true, `{"x":7}`: false} {
		o := read(t, small)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}})
		o = reread(t, o)
		if fieldmanager.DropUnreadable(o); (len(o.GetManagedFields()) > 0) != kept {
			t.Errorf("%s: %d managers are left", fields, len(o.GetManagedFields()))
		}
	}
}
