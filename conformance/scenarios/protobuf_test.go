package scenarios

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// binary returns a client for CRDs that speaks nothing but protobuf.
func binary(t *testing.T, config *rest.Config) typed.CustomResourceDefinitionInterface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	c, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c.ApiextensionsV1().CustomResourceDefinitions()
}

func boatCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("testdata/boats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// must returns a result that comes without an error.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// The generated clientset does everything that it can with CRDs, in protobuf.
func TestCRDsInProtobuf(t *testing.T) {
	s := alike(t, against, prefix())
	c := binary(t, s.Config)
	one := must[*apiextensionsv1.CustomResourceDefinition](t)
	ctx := t.Context()

	if _, err := c.Get(ctx, "boats.harbour.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("before it is there: %v", err)
	}
	crd := boatCRD(t)
	made := one(c.Create(ctx, crd, metav1.CreateOptions{}))
	if made.UID == "" || made.Generation != 1 || len(made.Spec.Versions) != len(crd.Spec.Versions) || made.Spec.Versions[0].Schema == nil {
		t.Errorf("created: %+v", made)
	}
	if _, err := c.Create(ctx, crd, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created again: %v", err)
	}
	wrong := crd.DeepCopy()
	wrong.Name = "ships.harbour.example.com"
	if _, err := c.Create(ctx, wrong, metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("with another name: %v", err)
	}
	events := must[watch.Interface](t)(c.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion}))
	defer events.Stop()

	eventually(t, 30*time.Second, "the CRD is established", func() bool {
		made = one(c.Get(ctx, crd.Name, metav1.GetOptions{}))
		for _, condition := range made.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	stale := made.DeepCopy()
	made.Spec.Names.Categories = []string{"fleet"}
	made.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "A boat."
	made = one(c.Update(ctx, made, metav1.UpdateOptions{FieldManager: "shipyard"}))
	if made.Generation != 2 || made.Spec.Names.Categories[0] != "fleet" || made.Spec.Versions[0].Schema.OpenAPIV3Schema.Description != "A boat." {
		t.Errorf("updated: %+v", made)
	}
	stale.Spec.Names.Categories = []string{"navy"}
	if _, err := c.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updated with an old version: %v", err)
	}
	eventually(t, 30*time.Second, "the status can be updated", func() bool {
		made = one(c.Get(ctx, crd.Name, metav1.GetOptions{}))
		made.Status.Conditions = append(made.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{Type: "Painted", Status: apiextensionsv1.ConditionTrue, Reason: "Test"})
		updated, err := c.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false // a controller was faster
		}
		made = one(updated, err)
		return true
	})
	if last := made.Status.Conditions[len(made.Status.Conditions)-1]; last.Type != "Painted" || made.Generation != 2 {
		t.Errorf("status updated: %+v", made.Status)
	}
	for kind, body := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/labels","value":{"json":"yes"}}]`,
		types.MergePatchType:          `{"metadata":{"annotations":{"merge":"yes"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"finalizers":["example.com/strategic"]}}`,
	} {
		one(c.Patch(ctx, crd.Name, kind, []byte(body), metav1.PatchOptions{}))
		one(c.Patch(ctx, crd.Name, kind, []byte(body), metav1.PatchOptions{}, "status"))
	}
	force := true
	made = one(c.Patch(ctx, crd.Name, types.ApplyYAMLPatchType, []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.harbour.example.com","labels":{"apply":"yes"}}}`),
		metav1.PatchOptions{FieldManager: "test", Force: &force}))
	if made.Labels["json"] != "yes" || made.Labels["apply"] != "yes" || made.Annotations["merge"] != "yes" || !strings.Contains(strings.Join(made.Finalizers, " "), "example.com/strategic") {
		t.Errorf("patched: %+v", made.ObjectMeta)
	}
	second := crd.DeepCopy()
	second.Name, second.Spec.Names = "rafts.harbour.example.com", apiextensionsv1.CustomResourceDefinitionNames{Plural: "rafts", Kind: "Raft"}
	one(c.Create(ctx, second, metav1.CreateOptions{}))
	list := must[*apiextensionsv1.CustomResourceDefinitionList](t)
	all := list(c.List(ctx, metav1.ListOptions{}))
	if len(all.Items) != 2 || all.ResourceVersion == "" || all.Items[0].Name != crd.Name || all.Items[1].Spec.Names.Kind != "Raft" || all.Items[0].Annotations["merge"] != "yes" {
		t.Errorf("listed: %+v", all)
	}
	if page := list(c.List(ctx, metav1.ListOptions{Limit: 1})); len(page.Items) != 1 || page.Continue == "" {
		t.Errorf("a page: %+v", page.ListMeta)
	}
	one(c.Patch(ctx, crd.Name, types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/finalizers","value":["customresourcecleanup.apiextensions.k8s.io"]}]`), metav1.PatchOptions{}))
	if err := c.Delete(ctx, crd.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("deleted with another UID: %v", err)
	}
	if err := c.Delete(ctx, crd.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))}); err != nil {
		t.Error(err)
	}
	follow(t, events, crd.Name)
	if err := c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	eventually(t, 30*time.Second, "all CRDs are gone", func() bool { return len(list(c.List(ctx, metav1.ListOptions{})).Items) == 0 })
}

// follow reads events about a CRD until it is gone.
func follow(t *testing.T, events watch.Interface, name string) {
	t.Helper()
	modified := 0
	for limit := time.After(30 * time.Second); ; {
		select {
		case event, ok := <-events.ResultChan():
			x, fits := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			switch {
			case !ok || !fits:
				t.Fatalf("%v %v %T", ok, event.Type, event.Object)
			case x.Name != name:
			case event.Type == watch.Modified:
				modified++
			case event.Type == watch.Deleted:
				if modified < 5 || x.Spec.Names.Categories[0] != "fleet" {
					t.Errorf("deleted after %d changes: %+v", modified, x)
				}
				return
			default:
				t.Errorf("%v %s", event.Type, x.Name)
			}
		case <-limit:
			t.Fatal("the watch has not seen the end")
		}
	}
}

// Custom resources have no protobuf form. Whatever a client sends and asks for, it is told so.
func TestObjectsInProtobufAreRefused(t *testing.T) {
	if against == launch.Upstream {
		t.Skip("upstream's server panics unless fieldValidation=Ignore is set, and recovers")
	}
	s := alike(t, against, prefix())
	installWithClient(t, s.Config)
	var body bytes.Buffer
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "harbour.example.com/v1", Kind: "Boat"}, Raw: []byte{}}
	if err := protobuf.NewSerializer(nil, nil).Encode(unknown, &body); err != nil {
		t.Fatal(err)
	}
	client := must[*http.Client](t)(s.HTTP())
	url := s.URL + "/apis/harbour.example.com/v1/namespaces/default/boats"
	if _, err := boatsOf(t, s.Config).Create(t.Context(), boat("albatros", "red"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const refusal = "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
	for _, c := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"POST", "", http.StatusBadRequest, refusal},
		{"POST", "?fieldValidation=Strict", http.StatusBadRequest, refusal},
		{"POST", "?fieldValidation=Ignore", http.StatusBadRequest, refusal},
		{"PUT", "/albatros", http.StatusBadRequest, refusal},
		{"PATCH", "/albatros", http.StatusUnsupportedMediaType, "the body of the request was in an unknown format"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, bytes.NewReader(body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.code || !strings.Contains(string(answer), c.want) {
			t.Errorf("%s %s: %v %d %s", c.method, c.path, err, resp.StatusCode, answer)
		}
	}
	for _, path := range []string{"", "/albatros", "?watch=1"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", runtime.ContentTypeProtobuf)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotAcceptable {
			t.Errorf("GET %s: %d", path, resp.StatusCode)
		}
	}
}
