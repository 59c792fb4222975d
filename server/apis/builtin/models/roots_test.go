package models

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// applied are the kinds that clients apply and list.
var applied = []any{
	&corev1.Namespace{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ServiceAccount{}, &corev1.ResourceQuota{}, &corev1.Event{},
	&eventsv1.Event{}, &coordinationv1.Lease{},
	&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{},
	&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{},
	&admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{},
	&flowcontrolv1.FlowSchema{}, &flowcontrolv1.PriorityLevelConfiguration{},
	&certificatesv1.CertificateSigningRequest{},
}

// kindsOf are the kinds of crd/kinds, and their lists.
func kindsOf() []any {
	var list []any
	for _, version := range kindGroups {
		known := scheme.Scheme.KnownTypes(version)
		for _, kind := range slices.Sorted(maps.Keys(known)) {
			t := known[kind]
			obj := reflect.New(t).Interface()
			if _, named := obj.(interface{ OpenAPIModelName() string }); named && strings.HasPrefix(t.PkgPath(), "k8s.io/api/") && !strings.HasSuffix(kind, "Options") && kind != "List" {
				list = append(list, obj)
			}
		}
	}
	return list
}

// lists are those of applied.
var lists = []any{
	&corev1.NamespaceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.ResourceQuotaList{}, &corev1.EventList{},
	&eventsv1.EventList{}, &coordinationv1.LeaseList{},
	&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	&admissionv1.ValidatingWebhookConfigurationList{}, &admissionv1.MutatingWebhookConfigurationList{},
	&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
	&admissionv1.MutatingAdmissionPolicyList{}, &admissionv1.MutatingAdmissionPolicyBindingList{},
	&flowcontrolv1.FlowSchemaList{}, &flowcontrolv1.PriorityLevelConfigurationList{},
	&certificatesv1.CertificateSigningRequestList{},
}

// answered are the kinds that are answered and not kept.
var answered = []any{
	&authenticationv1.TokenReview{}, &authenticationv1.TokenRequest{}, &authenticationv1.SelfSubjectReview{},
	&authorizationv1.SubjectAccessReview{}, &authorizationv1.LocalSubjectAccessReview{},
	&authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{},
	&autoscalingv1.Scale{},
}

func roots() []any {
	list := slices.Concat(applied, lists, answered)
	for _, one := range kindsOf() {
		if !slices.ContainsFunc(list, func(other any) bool { return reflect.TypeOf(one) == reflect.TypeOf(other) }) {
			list = append(list, one)
		}
	}
	return list
}

func names(roots []any) (list []string) {
	for _, root := range roots {
		list = append(list, nameOf(pointed(reflect.TypeOf(root))))
	}
	return list
}

// kindOf returns the kind of a model, as the OpenAPI handler does.
func kindOf(t *testing.T, roots []any) func(string) (string, spec.Extensions) {
	t.Helper()
	kinds := map[string]spec.Extensions{}
	for i, name := range names(roots) {
		gvk, _, err := scheme.Scheme.ObjectKinds(roots[i].(runtime.Object))
		if err != nil {
			t.Fatal(err)
		}
		kinds[name] = spec.Extensions{"x-kubernetes-group-version-kind": []any{
			map[string]any{"group": gvk[0].Group, "version": gvk[0].Version, "kind": gvk[0].Kind},
		}}
	}
	return func(name string) (string, spec.Extensions) { return name, kinds[name] }
}

func buildV3(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	v3, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		Info: &spec.Info{}, GetDefinitions: Definitions(roots()...), GetDefinitionName: kindOf(t, roots()),
	}, names(roots())...)
	if err != nil {
		t.Fatal(err)
	}
	return v3
}

func TestBothBuildersTakeAll(t *testing.T) {
	v3 := buildV3(t)
	v2, err := builder.BuildOpenAPIDefinitionsForResources(&common.Config{
		Info: &spec.Info{}, GetDefinitions: Definitions(roots()...), GetDefinitionName: kindOf(t, roots()),
	}, names(roots())...)
	if err != nil {
		t.Fatal(err)
	}
	definitions := Definitions(roots()...)(nameOnly)
	for name := range definitions {
		if _, ok := v3[name]; !ok {
			t.Errorf("v3 has no %s", name)
		}
		if _, ok := v2.Definitions[name]; !ok {
			t.Errorf("v2 has no %s", name)
		}
	}
	if len(v3) != len(definitions) || len(v2.Definitions) != len(definitions) {
		t.Errorf("%d definitions, v3 has %d, v2 %d", len(definitions), len(v3), len(v2.Definitions))
	}
	for _, name := range names(roots()) {
		if s := v3[name]; s == nil || s.Description == "" || s.Properties["kind"].Description == "" || s.Properties["apiVersion"].Description == "" {
			t.Errorf("%s: what it is, its kind or its version is not described", name)
		}
	}
}

// A client that applies by the published schemas owns the same fields as one that
// applies by client-go's.
func TestManagedFieldsAreThoseOfClientGo(t *testing.T) {
	published, err := managedfields.NewTypeConverter(buildV3(t), false)
	if err != nil {
		t.Fatal(err)
	}
	clients := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for _, root := range applied {
		obj := reflect.New(pointed(reflect.TypeOf(root)))
		fill(obj.Elem(), 0)
		o := obj.Interface().(runtime.Object)
		gvk, _, _ := scheme.Scheme.ObjectKinds(o)
		o.GetObjectKind().SetGroupVersionKind(gvk[0])
		want, err := clients.ObjectToTyped(o)
		if err != nil {
			t.Fatalf("%v: client-go: %v", gvk[0], err)
		}
		got, err := published.ObjectToTyped(o)
		if err != nil {
			t.Errorf("%v: %v", gvk[0], err)
			continue
		}
		wantSet, err := want.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		gotSet, err := got.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		if !wantSet.Equals(gotSet) {
			t.Errorf("%v: owned only by client-go's: %v\nonly by ours: %v", gvk[0], wantSet.Difference(gotSet), gotSet.Difference(wantSet))
		}
		if wantSet.Size() < 5 {
			t.Errorf("%v: only %d fields compared", gvk[0], wantSet.Size())
		}
	}
}

// fill puts something into every field.
func fill(v reflect.Value, depth int) {
	if !v.CanSet() || depth > 12 {
		return
	}
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(1, 0)))
		return
	case metav1.MicroTime:
		v.Set(reflect.ValueOf(metav1.NewMicroTime(metav1.Unix(1, 0).Time)))
		return
	case metav1.FieldsV1:
		v.Set(reflect.ValueOf(metav1.NewFieldsV1(`{}`)).Elem())
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{}`)}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint('x')
	}
}

func TestWhatListsAre(t *testing.T) {
	v3 := buildV3(t)
	for _, c := range []struct{ model, field, want string }{
		{"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "ownerReferences",
			`{"x-kubernetes-list-map-keys":["uid"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"uid","x-kubernetes-patch-strategy":"merge"}`},
		{"io.k8s.api.core.v1.NamespaceSpec", "finalizers", `{"x-kubernetes-list-type":"atomic"}`},
		{"io.k8s.api.core.v1.NamespaceStatus", "conditions",
			`{"x-kubernetes-list-map-keys":["type"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"type","x-kubernetes-patch-strategy":"merge"}`},
		{"io.k8s.api.core.v1.ConfigMap", "data", `null`},
		{"io.k8s.api.core.v1.ServiceAccount", "secrets",
			`{"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{"io.k8s.api.core.v1.ServiceAccount", "imagePullSecrets", `{"x-kubernetes-list-type":"atomic"}`},
		{"io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration", "webhooks",
			`{"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{"io.k8s.api.flowcontrol.v1.FlowSchemaStatus", "conditions",
			`{"x-kubernetes-list-map-keys":["type"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"type","x-kubernetes-patch-strategy":"merge"}`},
		{"io.k8s.api.flowcontrol.v1.ResourcePolicyRule", "verbs", `{"x-kubernetes-list-type":"set"}`},
		{"io.k8s.api.core.v1.ConfigMapList", "items", `null`},
	} {
		s, ok := v3[c.model]
		if !ok {
			t.Errorf("no %s", c.model)
			continue
		}
		p, ok := s.Properties[c.field]
		if !ok {
			t.Errorf("%s has no %s", c.model, c.field)
		}
		got, err := json.Marshal(map[string]any(p.Extensions))
		if err != nil || string(got) != c.want {
			t.Errorf("%s.%s: %s, want %s (%v)", c.model, c.field, got, c.want, err)
		}
	}
	if got := v3["io.k8s.api.core.v1.ObjectReference"].Extensions["x-kubernetes-map-type"]; got != "atomic" {
		t.Errorf("a reference to an object is %v, want atomic", got)
	}
}

// TestEveryKindCanBeDescribed is about the resources that may be added one day.
func TestEveryKindCanBeDescribed(t *testing.T) {
	var all []any
	for _, typ := range scheme.Scheme.AllKnownTypes() {
		if strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			all = append(all, reflect.Zero(typ).Interface())
		}
	}
	if len(all) < 300 {
		t.Errorf("only %d kinds", len(all))
	}
	anyKind := func(name string) (string, spec.Extensions) { return name, nil }
	v3, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		Info: &spec.Info{}, GetDefinitions: Definitions(all...), GetDefinitionName: anyKind,
	}, names(all)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := managedfields.NewTypeConverter(v3, false); err != nil {
		t.Error(err)
	}
	if _, err := builder.BuildOpenAPIDefinitionsForResources(&common.Config{
		Info: &spec.Info{}, GetDefinitions: Definitions(all...), GetDefinitionName: anyKind,
	}, names(all)...); err != nil {
		t.Error(err)
	}
	if got := text(v3["io.k8s.api.core.v1.ContainerPort"].Properties["protocol"].Default); got != `"TCP"` {
		t.Errorf("the default of a comment is %s", got)
	}
	for name, s := range v3 {
		if got := text(s); !strings.HasPrefix(got, "{") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := text(v3["io.k8s.apimachinery.pkg.util.intstr.IntOrString"].OneOf); got != `[{"type":"integer"},{"type":"string"}]` {
		t.Errorf("a number or text is %s", got)
	}
}

func nameOnly(name string) spec.Ref { return spec.MustCreateRef("#/" + name) }

func TestOrderMakesNoDifference(t *testing.T) {
	list := roots()
	want, err := json.Marshal(Definitions(list...)(nameOnly))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list)
	for range 3 {
		got, err := json.Marshal(Definitions(list...)(nameOnly))
		if err != nil || string(got) != string(want) {
			t.Fatalf("the definitions differ (%v)", err)
		}
	}
}

type (
	nameless struct{ A string }
	named    struct {
		C chan int `json:"c"`
	}
	impostor struct{ metav1.ObjectMeta }
)

func (named) OpenAPIModelName() string { return "named" }

func TestWhatHasNoDefinitionIsAPanic(t *testing.T) {
	for _, roots := range [][]any{{nil}, {"text"}, {nameless{}}, {named{}}, {metav1.ObjectMeta{}, impostor{}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T: no panic", roots[len(roots)-1])
				}
			}()
			Definitions(roots...)(nameOnly)
		}()
	}
}
