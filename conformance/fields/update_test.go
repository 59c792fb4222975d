package fields_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// An update by the only manager of an object is recorded as the stock field
// manager records it, its time included.
func TestUpdatedFieldsEqualTheFieldManagers(t *testing.T) {
	set, err := corpus.Load(t.Context(), corpus.Options{Short: true})
	if err != nil {
		t.Fatal(err)
	}
	compared, touched := 0, 0
	for i, def := range set.CRDs {
		if testing.Short() && i%10 != 0 || i%3 != 0 {
			continue
		}
		d, err := crd.Parse(def.JSON)
		if err != nil {
			t.Fatal(err)
		}
		v := &d.Versions[0]
		s, _, err := v.Compile(espalier.CompileOptions{Stored: true})
		if err != nil {
			continue // not structural: there are some
		}
		own, scope := managedFields(t, d, v, s)
		plan, err := generate.Compile(v.Schema)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			kind := generate.Options{APIVersion: d.Group + "/" + v.Name, Kind: d.Kind}
			live := created(t, own, normalized(t, s, plan.Append(nil, seed, kind)))
			other := normalized(t, s, plan.Append(nil, seed+1000, kind))
			next, err := s.Normalize(generate.Edit(live.JSON(), other.JSON(), seed), espalier.NormalizeOptions{})
			if err != nil || next.Changes&espalier.Mismatched != 0 {
				continue // such an object is refused before a manager owns it
			}
			now, err := object.FromJSON(next.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if now.APIVersion() != kind.APIVersion || now.Kind() != kind.Kind {
				continue // refused as well
			}
			want := now.DeepCopy()
			scope.FieldManager.UpdateNoErrors(live, want, "manager")
			got := updated(t, own, live, now)
			compared++
			if spelled(want) != spelled(got) {
				t.Fatalf("%s, seed %d:\nlive %s\nnow  %s\ngot  %s\nwant %s", d.Name, seed, live.JSON(), next.Bytes, spelled(got), spelled(want))
			}
			if spelled(got) != spelled(live) {
				touched++
			}
		}
	}
	t.Logf("%d updates compared, %d changed managed fields", compared, touched)
	if touched < compared/10 {
		t.Error("too few changes")
	}
}

// spelled is managed fields without the time of this test, which differs by
// milliseconds.
func spelled(o *object.Object) string {
	entries := o.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && time.Since(entries[i].Time.Time) < time.Hour {
			entries[i].Time = &metav1.Time{Time: time.Unix(0, 0)}
		}
	}
	var text []byte
	for _, e := range entries {
		var set any
		_ = json.Unmarshal(e.FieldsV1.GetRawBytes(), &set)
		canonical, _ := json.Marshal(set)
		e.FieldsV1 = nil
		line, _ := json.Marshal(e)
		text = append(append(append(text, line...), canonical...), '\n')
	}
	return string(text)
}

func normalized(t *testing.T, s *espalier.Schema, src []byte) *object.Object {
	t.Helper()
	r, err := s.Normalize(src, espalier.NormalizeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.FromJSON(r.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// created returns an object as it is stored, owned since long ago.
func created(t *testing.T, own *fieldmanager.ManagedFields, o *object.Object) *object.Object {
	t.Helper()
	o.SetManagedFields(nil)
	out, err := own.Creating(nothing{}, "manager/1").Create(t.Context(), o, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := out.(*object.Object)
	entries := made.GetManagedFields()
	for i := range entries {
		entries[i].Time = &metav1.Time{Time: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	made.SetManagedFields(entries)
	made.SetUID("uid")
	stored, err := object.FromJSON(made.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func updated(t *testing.T, own *fieldmanager.ManagedFields, live, now *object.Object) *object.Object {
	t.Helper()
	change := rest.DefaultUpdatedObjectInfo(now, func(_ context.Context, now, live runtime.Object) (runtime.Object, error) {
		return own.UpdateScope().FieldManager.UpdateNoErrors(live, now, "manager"), nil
	})
	out, _, err := own.Updating(nothing{live: live}, "manager/1").Update(t.Context(), "", change, nil, nil, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.(*object.Object)
}

// nothing is a storage that stores nothing.
type nothing struct {
	rest.Storage
	live *object.Object
}

func (nothing) Create(_ context.Context, o runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	return o, nil
}

func (n nothing) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	o, err := info.UpdatedObject(ctx, n.live)
	return o, false, err
}

func managedFields(t *testing.T, d *crd.CRD, v *crd.Version, s *espalier.Schema) (*fieldmanager.ManagedFields, *handlers.RequestScope) {
	t.Helper()
	types := fieldmanager.Converter(typesOf(t, d, v))
	gvk := schema.GroupVersionKind{Group: d.Group, Version: v.Name, Kind: d.Kind}
	scope := &handlers.RequestScope{Kind: gvk, HubGroupVersion: gvk.GroupVersion(), Creater: codec.Creater(), Convertor: same{}, Defaulter: same{}}
	var err error
	if scope.FieldManager, err = fieldmanager.Manager(types, scope, noStatus{gvk}); err != nil {
		t.Fatal(err)
	}
	own, err := fieldmanager.NewManagedFields(scope, types, bridge.Plan(s), "status")
	if err != nil {
		t.Fatal(err)
	}
	return own, scope
}

type noStatus struct{ gvk schema.GroupVersionKind }

func (n noStatus) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(n.gvk.GroupVersion().String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}
