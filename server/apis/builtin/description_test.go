package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/server/endpoints/discovery"
)

// review answers what it is asked: yes.
type review struct{}

func (review) New() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} }
func (review) Destroy()            {}
func (review) Create(_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	o := obj.(*authorizationv1.SelfSubjectAccessReview)
	o.Status.Allowed = true
	return o, nil
}

// tokens answers with a token that names the account.
type tokens struct{ store *genericregistry.Store }

func (tokens) New() runtime.Object { return &authenticationv1.TokenRequest{} }
func (tokens) Destroy()            {}
func (s tokens) Create(ctx context.Context, name string, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	account, err := s.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	o := obj.(*authenticationv1.TokenRequest)
	o.Status.Token = "token of " + kinds.Metadata(account).GetName()
	return o, nil
}

// all are the standard resources and events, a review, and tokens.
func all() []Resource {
	list := slices.Concat(Standard(), Policies(PolicyOptions{}), Events(0))
	for i := range list {
		if list[i].Plural == "serviceaccounts" {
			list[i].Subresources = map[string]func(*genericregistry.Store) rest.Storage{
				"token": func(s *genericregistry.Store) rest.Storage { return tokens{s} },
			}
		}
	}
	return append(list, Resource{
		Group: "authorization.k8s.io", Version: "v1", Plural: "selfsubjectaccessreviews", Singular: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview",
		New: review{}.New, Virtual: review{},
	})
}

func TestVirtualResourceAndTokens(t *testing.T) {
	e := start(t, all()...)
	ctx := context.Background()
	for media, c := range e.clients() {
		t.Run(media, func(t *testing.T) {
			r, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
			if err != nil || !r.Status.Allowed {
				t.Errorf("%v, %v", r, err)
			}
			e.Do("POST", "/api/v1/namespaces/n/serviceaccounts", `{"metadata":{"name":"`+media+`"}}`).Is(201)
			token, err := c.CoreV1().ServiceAccounts("n").CreateToken(ctx, media, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"a"}}}, metav1.CreateOptions{})
			if err != nil || token.Status.Token != "token of "+media || token.Spec.Audiences[0] != "a" {
				t.Errorf("%v, %v", token, err)
			}
		})
	}
	e.Do("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "").Is(405)
	e.Do("GET", "/api/v1/namespaces/n/serviceaccounts/json/token", "").Is(405)
	e.Do("POST", "/api/v1/namespaces/n/serviceaccounts/none/token", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1"}`).Is(404)
}

// Reviews and tokens have no columns. The text is kube-apiserver's.
func TestNoTableOfReviews(t *testing.T) {
	e := start(t, all()...)
	e.Do("POST", "/api/v1/namespaces/n/serviceaccounts", `{"metadata":{"name":"robot"}}`).Is(201)
	client := e.clients()["json"].CoreV1().RESTClient()
	post := func(path, as string) error {
		return client.Post().AbsPath(path).SetHeader("Accept", "application/json;as="+as+";g=meta.k8s.io;v=v1").SetHeader("Content-Type", "application/json").
			Body([]byte(`{}`)).Do(t.Context()).Error()
	}
	for _, path := range []string{"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/api/v1/namespaces/n/serviceaccounts/robot/token"} {
		const text = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
		if err := post(path, "Table"); !apierrors.IsNotAcceptable(err) || err.Error() != text {
			t.Errorf("%s: %v", path, err)
		}
		if err := post(path, "PartialObjectMetadata"); err != nil {
			t.Errorf("metadata of %s: %v", path, err)
		}
	}
	if err := client.Get().AbsPath("/api/v1/namespaces/n/serviceaccounts/robot").SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(t.Context()).Error(); err != nil {
		t.Errorf("a table of service accounts: %v", err)
	}
}

func TestDiscovery(t *testing.T) {
	e := start(t, all()...)
	found := map[string]discovery.Resource{}
	for _, g := range e.resources.Discovery() {
		if g.Priority <= 1000 {
			t.Errorf("group %q comes after custom resources", g.Name)
		}
		for _, v := range g.Versions {
			if !slices.IsSortedFunc(v.Resources, func(a, b discovery.Resource) int { return strings.Compare(a.Name, b.Name) }) {
				t.Errorf("%s/%s is not in order", g.Name, v.Name)
			}
			for _, r := range v.Resources {
				found[strings.Trim(g.Name+"/"+r.Name, "/")] = r
			}
		}
	}
	for name, want := range map[string]string{
		"configmaps":                 "configmaps configmap ConfigMap true create,delete,deletecollection,get,list,patch,update,watch cm qFsyl6wFWjQ= ",
		"namespaces":                 "namespaces namespace Namespace false create,delete,get,list,patch,update,watch ns Q3oi5N2YM8M= finalize:/update status:/get,patch,update",
		"secrets":                    "secrets secret Secret true create,delete,deletecollection,get,list,patch,update,watch  S6u1pOWzb84= ",
		"serviceaccounts":            "serviceaccounts serviceaccount ServiceAccount true create,delete,deletecollection,get,list,patch,update,watch sa pbx9ZvyFpBE= token:authentication.k8s.io/v1 TokenRequest/create",
		"events":                     "events event Event true create,delete,deletecollection,get,list,patch,update,watch ev r2yiGXH7wu8= ",
		"events.k8s.io/events":       "events event Event true create,delete,deletecollection,get,list,patch,update,watch ev r2yiGXH7wu8= ",
		"coordination.k8s.io/leases": "leases lease Lease true create,delete,deletecollection,get,list,patch,update,watch  gqkMMb/YqFM= ",
		"authorization.k8s.io/selfsubjectaccessreviews": "selfsubjectaccessreviews selfsubjectaccessreview SelfSubjectAccessReview false create   ",
	} {
		if got := describe(found[name]); got != want {
			t.Errorf("%s is\n%s, not\n%s", name, got, want)
		}
	}
}

// describe is a resource in a line.
func describe(r discovery.Resource) string {
	var parts []string
	for _, s := range r.Subresources {
		kind := strings.Trim(s.Group+"/"+s.Version+" "+s.Kind, "/ ")
		parts = append(parts, s.Name+":"+kind+"/"+strings.Join(s.Verbs, ","))
	}
	namespaced := "false"
	if r.Namespaced {
		namespaced = "true"
	}
	return strings.Join([]string{r.Name, r.Singular, r.Kind, namespaced, strings.Join(r.Verbs, ","), strings.Join(r.ShortNames, ","), r.StorageVersionHash, strings.Join(parts, " ")}, " ")
}

func TestOpenAPI(t *testing.T) {
	e := start(t, all()...)
	for _, b := range e.resources.OpenAPI() {
		definitions := b.Definitions(func(name string) spec.Ref { return spec.MustCreateRef("#/" + name) })
		for _, r := range b.Resources {
			for _, model := range []string{r.Model, r.ListModel} {
				if _, ok := definitions[model]; !ok {
					t.Errorf("%s/%s: there is no model %s", b.Group, r.Plural, model)
				}
			}
			for _, f := range []openapi.Format{openapi.V2, openapi.V3} {
				if data := openapi.AppendPaths(nil, r, f); len(data) == 0 || !json.Valid([]byte("{"+string(data)+"}")) {
					t.Errorf("%s/%s: the paths are %s", b.Group, r.Plural, data)
				}
			}
		}
	}
}

func TestEquivalentResources(t *testing.T) {
	e := start(t)
	core := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	mapper := e.resources.endpoints[endpointKey{core, ""}].Scope.EquivalentResourceMapper
	if got := mapper.EquivalentResourcesFor(core, ""); len(got) != 2 {
		t.Errorf("events are the same as %v", got)
	}
}
