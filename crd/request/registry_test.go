package request_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
)

func errorTexts(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return strings.Join(all, "\n")
}

func TestMetadataOfNewObjects(t *testing.T) {
	now, grace := metav1.Now(), int64(7)
	m := &metav1.ObjectMeta{
		Name: "a", Namespace: "other", UID: "u", CreationTimestamp: now, DeletionTimestamp: &now, DeletionGracePeriodSeconds: &grace,
		ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}
	if warnings := request.NewMetadata(m, true, "default"); warnings != nil {
		t.Error(warnings)
	}
	if m.Name != "a" || m.Namespace != "other" || m.UID != "" || !m.CreationTimestamp.IsZero() || m.DeletionTimestamp != nil || m.DeletionGracePeriodSeconds != nil || m.ManagedFields != nil {
		t.Errorf("%+v", m)
	}
	request.NewMetadata(m, false, "default")
	if m.Namespace != "" {
		t.Errorf("an object of cluster scope is in namespace %s", m.Namespace)
	}
	request.NewMetadata(m, true, "default")
	if m.Namespace != "default" {
		t.Errorf("an object without a namespace is in %q", m.Namespace)
	}
	for prefix, want := range map[string]int{"": 0, "a": 6, strings.Repeat("a", 58): 63, strings.Repeat("a", 59): 63} {
		m := &metav1.ObjectMeta{GenerateName: prefix}
		request.NewMetadata(m, true, "default")
		if len(m.Name) != want || !strings.HasPrefix(m.Name, prefix[:min(len(prefix), 58)]) {
			t.Errorf("%d bytes of generateName give %q", len(prefix), m.Name)
		}
	}
}

// Owners that are the same in everything are one.
func TestOwnersThatAreThereTwice(t *testing.T) {
	yes, no := true, false
	refs := []metav1.OwnerReference{
		{Name: "a", UID: "1", Controller: &yes}, {Name: "a", UID: "1", Controller: &no}, {Name: "a", UID: "1"}, {Name: "a", UID: "1", BlockOwnerDeletion: &yes},
		{Name: "a", UID: "2"}, {Name: "b", UID: "1"},
	}
	again := true
	m := &metav1.ObjectMeta{OwnerReferences: append(slices.Clone(refs), metav1.OwnerReference{Name: "a", UID: "1", Controller: &again}, metav1.OwnerReference{Name: "a", UID: "2"})}
	warnings := request.NewMetadata(m, true, "")
	if len(m.OwnerReferences) != len(refs) || len(warnings) != 1 || !strings.HasSuffix(warnings[0], "duplicate UID(s) observed: 1, 2") {
		t.Errorf("%q, %+v", warnings, m.OwnerReferences)
	}
	if warnings := request.ChangedMetadata(m, &metav1.ObjectMeta{}, true, ""); warnings != nil {
		t.Error(warnings)
	}
}

func TestMetadataOfChangedObjects(t *testing.T) {
	o := &metav1.ObjectMeta{UID: "u", Generation: 9, ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	old := &metav1.ObjectMeta{Generation: 3, ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	request.ChangedMetadata(o, old, true, "n")
	if o.ResourceVersion != "1" || old.ResourceVersion != "1" || old.UID != "u" || o.Generation != 3 || o.Namespace != "n" || old.Namespace != "n" || o.ManagedFields != nil || old.ManagedFields != nil {
		t.Errorf("%+v\n%+v", o, old)
	}
	o, old = &metav1.ObjectMeta{UID: "u", ResourceVersion: "5"}, &metav1.ObjectMeta{UID: "v", ResourceVersion: "4"}
	request.ChangedMetadata(o, old, false, "n")
	if o.ResourceVersion != "5" || old.ResourceVersion != "4" || old.UID != "v" || o.UID != "u" || o.Namespace != "" {
		t.Errorf("%+v\n%+v", o, old)
	}
}

func TestMetadataThatUpdatesKeep(t *testing.T) {
	at, later, grace, other := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0)), int64(7), int64(8)
	old := &metav1.ObjectMeta{UID: "u", CreationTimestamp: at, DeletionTimestamp: &at, DeletionGracePeriodSeconds: &grace}
	o := &metav1.ObjectMeta{CreationTimestamp: later}
	request.KeepMetadata(o, old)
	if o.UID != "u" || !o.CreationTimestamp.Equal(&at) || !o.DeletionTimestamp.Equal(&at) || *o.DeletionGracePeriodSeconds != 7 {
		t.Errorf("%+v", o)
	}
	o = &metav1.ObjectMeta{UID: "v", CreationTimestamp: later, DeletionTimestamp: &later, DeletionGracePeriodSeconds: &other}
	request.KeepMetadata(o, old)
	if o.UID != "v" || *o.DeletionGracePeriodSeconds != 8 {
		t.Errorf("%+v", o)
	}
	request.KeepMetadata(o, &metav1.ObjectMeta{})
	if !o.CreationTimestamp.Equal(&at) || !o.DeletionTimestamp.Equal(&at) || o.DeletionGracePeriodSeconds == nil {
		t.Errorf("an old object without times: %+v", o)
	}
}

func TestUpdateErrors(t *testing.T) {
	meta := func(name, namespace, generate string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Name: name, Namespace: namespace, GenerateName: generate, UID: "u", ResourceVersion: "1"}
	}
	for _, c := range []struct {
		o, old     *metav1.ObjectMeta
		namespaced bool
		want       string
	}{
		{meta("a", "n", ""), meta("a", "n", ""), true, ""},
		{meta("b", "n", ""), meta("a", "n", ""), true, `metadata.name: Invalid value: "b": field is immutable`},
		{meta("a", "", ""), meta("a", "", ""), false, ""},
		{meta("a", "", ""), meta("a", "", ""), true, "metadata.namespace: Required value"},
		{meta("a/b", "n", ".."), meta("a/b", "n", ".."), true, `metadata.name: Invalid value: "a/b": may not contain '/'`},
		{meta("..", "n", "a%"), meta("..", "n", "a%"), true, `metadata.generateName: Invalid value: "a%": may not contain '%'` + "\n" + `metadata.name: Invalid value: "..": may not be '..'`},
	} {
		if got := errorTexts(request.UpdateErrors(c.o, c.old, c.namespaced)); got != c.want {
			t.Errorf("%+v: %s", c.o, got)
		}
	}
}

func TestGenerateNameErrors(t *testing.T) {
	check := func(name string, prefix bool) []string {
		if !prefix {
			t.Error("generateName is a prefix")
		}
		return []string{"no " + name, "at all"}
	}
	if errs := request.GenerateNameErrors(&metav1.ObjectMeta{}, check); errs != nil {
		t.Error(errs)
	}
	want := `metadata.generateName: Invalid value: "a": no a` + "\n" + `metadata.generateName: Invalid value: "a": at all`
	if got := errorTexts(request.GenerateNameErrors(&metav1.ObjectMeta{GenerateName: "a"}, check)); got != want {
		t.Error(got)
	}
}

func TestPreconditionsOfObjects(t *testing.T) {
	for _, c := range []struct {
		o, old types.UID
		want   bool
	}{{"", "", true}, {"a", "", true}, {"", "a", true}, {"a", "a", true}, {"a", "b", false}} {
		if got := request.SameUID(&metav1.ObjectMeta{UID: c.o}, &metav1.ObjectMeta{UID: c.old}); got != c.want {
			t.Errorf("%q after %q: %v", c.o, c.old, got)
		}
	}
	for version, want := range map[string]bool{"": false, "x": false, "0": false, "5": true, "18446744073709551615": true, "18446744073709551616": false, "5x": false} {
		if got := request.StoredResourceVersion(&metav1.ObjectMeta{ResourceVersion: version}); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestQualifiedFinalizers(t *testing.T) {
	const wrong = "name is neither a standard finalizer name nor is it fully qualified"
	errs := request.QualifiedFinalizers(&metav1.ObjectMeta{Finalizers: []string{"a", "b/c", "orphan", "foregroundDeletion", "kubernetes", "/"}})
	if got := errorTexts(errs); got != `metadata.finalizers[0]: Invalid value: "a": `+wrong {
		t.Error(got)
	}
}

// Clients are told of the newest version that they can use.
func TestDeprecationWarningNamesTheNewest(t *testing.T) {
	d := &crd.CRD{Group: "g", Names: crd.Names{Kind: "K"}, Versions: []crd.Version{
		{Name: "v1beta1", Served: true, Deprecated: true}, {Name: "v2", Served: true}, {Name: "v1", Served: true}, {Name: "v3", Served: true},
		{Name: "v2beta1", Served: true}, {Name: "v4"}, {Name: "v5", Served: true, Deprecated: true},
	}}
	for version, want := range map[string]string{
		"v1beta1": "g/v1beta1 K is deprecated; use g/v3 K", "v2": "g/v2 K is deprecated; use g/v3 K", "v3": "g/v3 K is deprecated", "v5": "g/v5 K is deprecated",
	} {
		if got := request.DeprecationWarning(d, d.Version(version)); got != want {
			t.Errorf("%s: %s", version, got)
		}
	}
	// Names that say no version are sorted by the alphabet, and the first is the newest.
	d = &crd.CRD{Group: "g", Names: crd.Names{Kind: "K"}, Versions: []crd.Version{{Name: "old", Served: true, Deprecated: true}, {Name: "new", Served: true}}}
	if got := request.DeprecationWarning(d, d.Version("old")); got != "g/old K is deprecated; use g/new K" {
		t.Error(got)
	}
}

// Metadata is decoded before the schema prunes.
func TestOrderOfUnknownFields(t *testing.T) {
	_, s, _ := widget(t)
	var report espalier.Report
	body := []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","odd":1,"even":2},"abc":1,"spec":{"size":1,"b":1},"metadatum":1}`)
	if _, _, err := s.Decode(body, &report, 0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(request.Pruned(&report), " "); got != "metadata.even metadata.odd abc metadatum spec.b" && got != "metadata.odd metadata.even abc metadatum spec.b" {
		t.Error(got)
	}
}

func TestKindOf(t *testing.T) {
	if got := request.KindOf([]byte(`{"apiVersion":"a/v1","kind":"K"}`)); got.String() != "a/v1, Kind=K" {
		t.Error(got)
	}
	if got := request.KindOf([]byte(`[]`)); !got.Empty() {
		t.Error(got)
	}
}

// What cannot be decoded has not changed.
func TestDecodeErrorsChangeNothing(t *testing.T) {
	_, s, _ := widget(t)
	for _, body := range []string{`[]`, `{"apiVersion":"example.com/v1"}`, `{"Kind":[],"kind":"Widget","apiVersion":"example.com/v1"}`} {
		if o, changes, err := s.Decode([]byte(body), nil, 0); o != nil || changes != 0 || err == nil {
			t.Errorf("%s: %v, %v, %v", body, o, changes, err)
		}
	}
	if o, err := request.DecodeForeign([]byte(`[]`)); o != nil || err == nil {
		t.Errorf("of another kind: %v, %v", o, err)
	}
}

// Objects of another version are pruned, and get no defaults.
func TestDecodeConverted(t *testing.T) {
	_, s, _ := widget(t)
	stored, err := s.DecodeStored([]byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"size":1}}`))
	if err != nil || stored.Source() == nil {
		t.Fatal(err)
	}
	o, err := s.DecodeConverted(stored)
	if err != nil || o.Source() != nil {
		t.Errorf("%v: a converted object is not what storage holds: %s", err, o.Source())
	}
	stored.ReplaceMember("spec", []byte(`{"odd":1,"size":1}`))
	if o, err = s.DecodeConverted(stored); err != nil || string(o.Member("spec")) != `{"size":1}` {
		t.Errorf("%v: %s", err, o.JSON())
	}
}
