package customresourcedefinition

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	apifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// testServer serves CRDs over HTTP.
type testServer struct {
	*Resource
	backend *store.Backend
	prefix  string
	url     string
}

func serve(tb testing.TB, change ...func(*Options)) *testServer {
	tb.Helper()
	prefix := etcdtest.Prefix(tb)
	config := storagebackend.NewDefaultConfig(prefix, nil)
	config.Transport.ServerList = []string{etcdtest.Endpoint(tb)}
	config.CompactionInterval = 0
	backend, err := store.Open(context.Background(), store.Config{Config: *config})
	if err != nil {
		tb.Fatal(err)
	}
	o := Options{Backend: backend, Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()}
	for _, f := range change {
		f(&o)
	}
	d, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, _ := request.RequestInfoFrom(req.Context())
		endpoint := d.Endpoint(info.APIVersion, info.Subresource)
		if endpoint == nil || info.Resource != plural {
			http.NotFound(w, req)
			return
		}
		endpoints.Serve(w, req, info, endpoint)
	})
	handler = apifilters.WithAuditInit(apifilters.WithWarningRecorder(handler))
	handler = apifilters.WithRequestInfo(handler, requestinfo.Resolver{})
	server := httptest.NewServer(handler)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		d.Store().Destroy()
		_ = backend.Close()
	})
	return &testServer{d, backend, prefix, server.URL + "/apis/apiextensions.k8s.io/"}
}

// answer is a response.
type answer struct {
	code     int
	body     string
	warnings []string
}

func (a answer) decode(tb testing.TB, into any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		tb.Fatalf("%v: %s", err, a.body)
	}
}

// message returns the text of a Status.
func (a answer) message() string {
	var s metav1.Status
	_ = json.Unmarshal([]byte(a.body), &s)
	return s.Message
}

// do sends a request; kind is the type of its body, or Accept of one without.
func (s *testServer) do(tb testing.TB, method, path, kind string, body []byte) answer {
	tb.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	switch {
	case body != nil:
		req.Header.Set("Content-Type", kind)
	case kind != "":
		req.Header.Set("Accept", kind)
	}
	req.Header.Set("User-Agent", "test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer{resp.StatusCode, string(data), resp.Header.Values("Warning")}
}

const asJSONBody, asYAMLBody = "application/json", "application/yaml"

// created posts a CRD in its own version.
func (s *testServer) created(tb testing.TB, text string) *v1.CustomResourceDefinition {
	tb.Helper()
	path := "v1/" + plural
	if strings.Contains(text, "/v1beta1") {
		path = "v1beta1/" + plural
	}
	a := s.do(tb, "POST", path, asYAMLBody, []byte(text))
	if a.code != http.StatusCreated {
		tb.Fatalf("%d: %s", a.code, a.body)
	}
	return s.stored(tb, sent(tb, text).GetName())
}

func (s *testServer) stored(tb testing.TB, name string) *v1.CustomResourceDefinition {
	tb.Helper()
	a := s.do(tb, "GET", "v1/"+plural+"/"+name, "", nil)
	if a.code != http.StatusOK {
		tb.Fatalf("%d: %s", a.code, a.body)
	}
	out := &v1.CustomResourceDefinition{}
	a.decode(tb, out)
	return out
}

func TestLifeOfACRD(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	if x.UID == "" || x.Generation != 1 || x.ResourceVersion == "" || x.Status.StoredVersions[0] != "v1" || x.APIVersion != "apiextensions.k8s.io/v1" {
		t.Errorf("%+v", x)
	}
	if len(x.ManagedFields) != 1 || x.ManagedFields[0].Manager != "test" || strings.Contains(string(x.ManagedFields[0].FieldsV1.GetRawBytes()), "f:status") {
		t.Errorf("%+v", x.ManagedFields)
	}
	kv, err := s.backend.Client().Get(context.Background(), s.prefix+"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com")
	if err != nil || len(kv.Kvs) != 1 || !bytes.HasPrefix(kv.Kvs[0].Value, stored) {
		t.Errorf("%v %v", kv, err)
	}
	if a := s.do(t, "POST", "v1/"+plural, asYAMLBody, []byte(widgets)); a.code != http.StatusConflict || a.message() != `customresourcedefinitions.apiextensions.k8s.io "widgets.example.com" already exists` {
		t.Errorf("%d %s", a.code, a.message())
	}

	path := "v1/" + plural + "/widgets.example.com"
	if a := s.do(t, "PUT", path, asYAMLBody, []byte(widgets)); a.code != http.StatusUnprocessableEntity ||
		a.message() != `customresourcedefinitions.apiextensions.k8s.io "widgets.example.com" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update` {
		t.Errorf("%d %s", a.code, a.message())
	}
	if a := s.do(t, "PUT", "v1/"+plural+"/others.example.com", asYAMLBody, []byte(edited(widgets, "widgets", "others"))); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.message())
	}
	x.Spec.Names.ShortNames = []string{"wd"}
	x.Status.StoredVersions = []string{"v7"}
	data, _ := json.Marshal(x)
	a := s.do(t, "PUT", path, asJSONBody, data)
	a.decode(t, x)
	if a.code != http.StatusOK || x.Generation != 2 || x.Status.StoredVersions[0] != "v1" {
		t.Errorf("%d %s", a.code, a.body)
	}
	version := x.ResourceVersion
	if data, _ = json.Marshal(x); true {
		a = s.do(t, "PUT", path, asJSONBody, data)
		a.decode(t, x)
	}
	if a.code != http.StatusOK || x.ResourceVersion != version {
		t.Errorf("a PUT that changes nothing: %d, %s instead of %s", a.code, x.ResourceVersion, version)
	}

	a = s.do(t, "PATCH", path+"/status", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"scope":"Cluster"},"status":{"acceptedNames":{"plural":"widgets","kind":"Widget"}}}`))
	a.decode(t, x)
	if a.code != http.StatusOK || x.Spec.Scope != v1.NamespaceScoped || x.Status.AcceptedNames.Kind != "Widget" || x.Generation != 2 {
		t.Errorf("%d %s", a.code, a.body)
	}
	a = s.do(t, "PATCH", path, "application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`))
	if x = s.stored(t, x.Name); a.code != http.StatusOK || x.Annotations["a"] != "b" || x.Generation != 2 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// A user with rights on the status alone cannot delete a CRD, or change the annotation
// that protects it: the subresource does not write metadata.
func TestStatusKeepsMetadata(t *testing.T) {
	s := serve(t)
	before := s.created(t, widgets)
	path := "v1/" + plural + "/" + before.Name
	const stolen = `{"labels":{"a":"b"},"annotations":{"espalier.dev/allow-deletion":"true"},"finalizers":["x.io/y"],` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"11111111-2222-3333-4444-555555555555"}]}`
	check := func(how string, a answer) {
		t.Helper()
		x := s.stored(t, before.Name)
		if a.code != http.StatusOK || len(x.Labels) != len(before.Labels) || len(x.Annotations) != len(before.Annotations) ||
			len(x.Finalizers) != 0 || len(x.OwnerReferences) != 0 || x.Generation != before.Generation || len(x.Status.Conditions) != 1 {
			t.Errorf("%s: %d %+v", how, a.code, x.ObjectMeta)
		}
	}
	const condition = `"status":{"conditions":[{"type":"Test","status":"True","lastTransitionTime":null,"reason":"r","message":"m"}]}`
	check("merge patch", s.do(t, "PATCH", path+"/status", "application/merge-patch+json", []byte(`{"metadata":`+stolen+`,`+condition+`}`)))
	check("apply", s.do(t, "PATCH", path+"/status?fieldManager=m&force=true", "application/apply-patch+yaml",
		[]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":`+stolen+`,`+condition+`}`)))
	x := s.stored(t, before.Name)
	x.APIVersion, x.Kind = "apiextensions.k8s.io/v1", kind
	x.Annotations = map[string]string{AllowDeletion: "true"}
	x.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "u"}}
	data, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	check("update", s.do(t, "PUT", path+"/status", asJSONBody, data))
}

func TestRefusalsOverHTTP(t *testing.T) {
	s := serve(t)
	a := s.do(t, "POST", "v1/"+plural, asYAMLBody, []byte(edited(widgets, "name: widgets.", "name: gadgets.", "Namespaced", "Galaxy")))
	want := `CustomResourceDefinition.apiextensions.k8s.io "gadgets.example.com" is invalid: [metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group, spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"]`
	if a.code != http.StatusUnprocessableEntity || a.message() != want {
		t.Errorf("%d %s", a.code, a.message())
	}
	odd := edited(widgets, "  scope:", "  colour: red\n  scope:")
	a = s.do(t, "POST", "v1/"+plural+"?fieldValidation=Strict", asYAMLBody, []byte(odd))
	if a.code != http.StatusBadRequest || !strings.HasSuffix(a.message(), `strict decoding error: unknown field "spec.colour"`) {
		t.Errorf("%d %s", a.code, a.message())
	}
	a = s.do(t, "POST", "v1/"+plural+"?fieldValidation=Warn&dryRun=All", asYAMLBody, []byte(odd))
	if a.code != http.StatusCreated || !slices.Equal(a.warnings, []string{`299 - "unknown field \"spec.colour\""`}) {
		t.Errorf("%d %q", a.code, a.warnings)
	}
	a = s.do(t, "POST", "v1/"+plural+"?dryRun=All", asYAMLBody, []byte(edited(widgets, "type: integer, default: 3", "type: string, format: blue")))
	if a.code != http.StatusCreated || !slices.Equal(a.warnings, []string{`299 - "unrecognized format \"blue\""`}) {
		t.Errorf("%d %q", a.code, a.warnings)
	}
	a = s.do(t, "POST", "v1beta1/"+plural, asYAMLBody, []byte(widgets))
	if a.code != http.StatusBadRequest || !strings.Contains(a.message(), "the API version in the data (apiextensions.k8s.io/v1) does not match the expected API version (apiextensions.k8s.io/v1beta1)") {
		t.Errorf("%d %s", a.code, a.message())
	}
	if a := s.do(t, "GET", "v1/"+plural+"/widgets.example.com", "", nil); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestBetaOverHTTP(t *testing.T) {
	s := serve(t)
	x := s.created(t, gadgets)
	if !x.Spec.PreserveUnknownFields || x.Spec.Versions[0].Schema == nil {
		t.Errorf("%+v", x.Spec)
	}
	path := "v1beta1/" + plural + "/gadgets.example.com"
	a := s.do(t, "GET", path, "", nil)
	if !strings.Contains(a.body, `"apiVersion":"apiextensions.k8s.io/v1beta1"`) || !strings.Contains(a.body, `"validation":{"openAPIV3Schema":{`) {
		t.Error(a.body)
	}
	version := x.ResourceVersion
	a = s.do(t, "PUT", path, asJSONBody, []byte(a.body))
	if x = s.stored(t, "gadgets.example.com"); a.code != http.StatusOK || x.ResourceVersion != version {
		t.Errorf("a PUT that changes nothing: %d %s", a.code, a.body)
	}
	a = s.do(t, "PATCH", path, "application/merge-patch+json", []byte(`{"spec":{"preserveUnknownFields":false}}`))
	if a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields") {
		t.Errorf("%d %s", a.code, a.message())
	}
	a = s.do(t, "PATCH", path, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"validation":{"openAPIV3Schema":{"properties":{"more":{}}}}}}`))
	if a.code != http.StatusOK || !strings.Contains(a.body, `"more":{}`) || !strings.Contains(a.body, "/v1beta1") {
		t.Errorf("%d %s", a.code, a.body)
	}
	a = s.do(t, "PATCH", "v1/"+plural+"/gadgets.example.com", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"c":"d"}}}`))
	if a.code != http.StatusOK {
		t.Errorf("%d %s", a.code, a.body)
	}
	s.created(t, widgets)
	a = s.do(t, "GET", "v1beta1/"+plural, "", nil)
	if a.code != http.StatusOK || strings.Count(a.body, `"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition"`) != 2 || !strings.Contains(a.body, `"kind":"CustomResourceDefinitionList"`) {
		t.Error(a.body)
	}
}

func TestApplyOverHTTP(t *testing.T) {
	s := serve(t)
	for _, version := range Versions {
		text, name := unions, "unions"
		if version == beta.Version {
			text, name = gadgets, "gadgets"
		}
		path := version + "/" + plural + "/" + name + ".example.com?fieldManager=someone"
		text = edited(text, ", whatever: 1", "")
		a := s.do(t, "PATCH", path, "application/apply-patch+yaml", []byte(text))
		if a.code != http.StatusCreated {
			t.Fatalf("%d %s", a.code, a.body)
		}
		o, err := object.FromJSON(bytes.TrimSpace([]byte(a.body)))
		if err != nil {
			t.Fatal(err)
		}
		if m := o.GetManagedFields(); len(m) != 1 || m[0].Operation != metav1.ManagedFieldsOperationApply || m[0].APIVersion != "apiextensions.k8s.io/"+version || o.GetUID() == "" {
			t.Errorf("%+v", m)
		}
		if !strings.Contains(a.body, `"listKind"`) {
			t.Errorf("without defaults: %s", a.body)
		}
		if version == stable.Version && (!strings.Contains(a.body, `"readOnly":true`) || !strings.Contains(a.body, "x-kubernetes-unions")) {
			t.Errorf("keywords are lost: %s", a.body)
		}
		again := s.do(t, "PATCH", path, "application/apply-patch+yaml", []byte(text))
		if again.code != http.StatusOK || again.body != a.body {
			t.Errorf("again: %d\n%s\n%s", again.code, a.body, again.body)
		}
		a = s.do(t, "PATCH", strings.Replace(path, "someone", "other", 1), "application/apply-patch+yaml", []byte(edited(text, "kind: Union}", "kind: Onion}", "kind: Gadget}", "kind: Budget}")))
		if a.code != http.StatusConflict || !strings.Contains(a.message(), `conflict with "someone": .spec.names.kind`) {
			t.Errorf("%d %s", a.code, a.message())
		}
	}
}

func TestDeletion(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	path := "v1/" + plural + "/widgets.example.com"
	a := s.do(t, "DELETE", path, asJSONBody, []byte(`{"preconditions":{"uid":"other"}}`))
	if a.code != http.StatusConflict || !strings.HasSuffix(a.message(), "precondition failed: UID in precondition: other, UID in object meta: "+string(x.UID)) {
		t.Errorf("%d %s", a.code, a.message())
	}
	a = s.do(t, "DELETE", path, "", nil)
	a.decode(t, x)
	c := x.Status.Conditions
	if a.code != http.StatusOK || x.DeletionTimestamp == nil || !slices.Equal(x.Finalizers, []string{Finalizer}) || len(c) != 1 ||
		c[0].Type != v1.Terminating || c[0].Status != v1.ConditionTrue || c[0].Reason != "InstanceDeletionPending" ||
		c[0].Message != "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon" {
		t.Errorf("%d %s", a.code, a.body)
	}
	s.do(t, "DELETE", path, "", nil)
	s.stored(t, "widgets.example.com")
	free := func(o *object.Object) error { o.SetFinalizers(nil); return nil }
	if err := s.UpdateStatus(context.Background(), "widgets.example.com", free); err != nil {
		t.Fatal(err)
	}
	if a := s.do(t, "GET", path, "", nil); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.body)
	}

	s.created(t, widgets)
	s.created(t, gadgets)
	a = s.do(t, "DELETE", "v1/"+plural, "", nil)
	if a.code != http.StatusOK || !strings.Contains(a.body, "widgets.example.com") || !strings.Contains(a.body, "gadgets.example.com") {
		t.Errorf("%d %s", a.code, a.body)
	}
	for _, name := range []string{"widgets.example.com", "gadgets.example.com"} {
		if x := s.stored(t, name); x.DeletionTimestamp == nil || len(x.Finalizers) != 1 {
			t.Errorf("%+v", x)
		}
	}
}

func TestTablesOverHTTP(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for _, version := range Versions {
		var table metav1.Table
		s.do(t, "GET", version+"/"+plural+"?includeObject=Object", accept, nil).decode(t, &table)
		var names []string
		for _, c := range table.ColumnDefinitions {
			names = append(names, c.Name)
		}
		if !slices.Equal(names, []string{"Name", "Scope", "Versions", "Created At", "Group", "Kind", "ShortNames", "Established"}) || table.ColumnDefinitions[4].Priority != 1 {
			t.Errorf("%+v", table.ColumnDefinitions)
		}
		want := []any{"widgets.example.com", "Namespaced", "v1(storage)", x.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z"), "example.com", "Widget", "wg", false}
		if len(table.Rows) != 1 || !slices.Equal(table.Rows[0].Cells, want) {
			t.Fatalf("%+v", table.Rows)
		}
		if row := string(table.Rows[0].Object.Raw); !strings.Contains(row, `"apiVersion":"apiextensions.k8s.io/`+version+`"`) {
			t.Error(row)
		}
	}
}

func TestSelectionAndMetadataOverHTTP(t *testing.T) {
	s := serve(t)
	s.created(t, widgets)
	s.created(t, gadgets)
	a := s.do(t, "GET", "v1/"+plural+"?fieldSelector=metadata.name%3Dgadgets.example.com", "", nil)
	if a.code != http.StatusOK || strings.Contains(a.body, "widgets.example.com") || !strings.Contains(a.body, "gadgets.example.com") {
		t.Errorf("%d %s", a.code, a.body)
	}
	a = s.do(t, "GET", "v1/"+plural+"?fieldSelector=spec.group%3Dexample.com", "", nil)
	if a.code != http.StatusBadRequest || a.message() != `"spec.group" is not a known field selector: only "metadata.name", "metadata.namespace"` {
		t.Errorf("%d %s", a.code, a.message())
	}
	var list metav1.PartialObjectMetadataList
	a = s.do(t, "GET", "v1/"+plural+"?limit=1", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", nil)
	a.decode(t, &list)
	if a.code != http.StatusOK || len(list.Items) != 1 || list.Items[0].Name != "gadgets.example.com" || list.Continue == "" {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestWatchInBeta(t *testing.T) {
	s := serve(t)
	x := s.created(t, widgets)
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"v1beta1/"+plural+"?watch=1&resourceVersion="+x.ResourceVersion, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.created(t, gadgets)
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"type":"ADDED","object":{`) || !strings.Contains(line, `"apiextensions.k8s.io/v1beta1"`) || !strings.Contains(line, "gadgets.example.com") {
		t.Errorf("%v %s", err, line)
	}
}

func TestStatusWriter(t *testing.T) {
	s, ctx := serve(t), context.Background()
	x := s.created(t, gadgets)
	calls := 0
	err := s.UpdateStatus(ctx, x.Name, func(o *object.Object) error {
		if calls++; calls == 1 { // another client writes first
			if a := s.do(t, "PATCH", "v1/"+plural+"/"+x.Name, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)); a.code != http.StatusOK {
				t.Error(a.body)
			}
		}
		status, err := crdcontroller.StatusOf(o)
		crdcontroller.SetCondition(status, v1.CustomResourceDefinitionCondition{Type: v1.Established, Status: v1.ConditionTrue, Reason: "InitialNamesAccepted"}, 0, time.Now())
		crdcontroller.SetStatus(o, status)
		return err
	})
	if err != nil || calls < 2 {
		t.Fatal(calls, err)
	}
	x = s.stored(t, x.Name)
	if len(x.Status.Conditions) != 1 || x.Labels["a"] != "b" {
		t.Errorf("%+v", x)
	}
	if err := s.UpdateStatus(ctx, x.Name, func(*object.Object) error { return nil }); err != nil || s.stored(t, x.Name).ResourceVersion != x.ResourceVersion {
		t.Errorf("nothing changed, but it was written: %v", err)
	}
	if err := s.UpdateStatus(ctx, "none", func(*object.Object) error { return nil }); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	own := errors.New("not now")
	if err := s.UpdateStatus(ctx, x.Name, func(*object.Object) error { return own }); err != own {
		t.Error(err)
	}
	var obj runtime.Object
	if obj, err = s.Store().Get(request.WithNamespace(ctx, ""), x.Name, &metav1.GetOptions{}); err != nil || obj.(*object.Object).GetName() != x.Name {
		t.Error(err)
	}
}

func TestLargeCRDsFitIntoEtcd(t *testing.T) {
	s := serve(t)
	text := edited(widgets, "type: integer", "type: integer, description: "+strings.Repeat("x", 500<<10))
	version := text[strings.Index(text, "  - name: v1"):]
	for _, name := range []string{"v2", "v3", "v4"} {
		text += edited(version, "name: v1", "name: "+name, "storage: true", "storage: false")
	}
	x := s.created(t, text)
	if len(x.Spec.Versions) != 4 || len(x.Spec.Versions[3].Schema.OpenAPIV3Schema.Properties["spec"].Properties["size"].Description) != 500<<10 || x.Spec.PreserveUnknownFields {
		t.Error("it is not what was sent")
	}
	kv, err := s.backend.Client().Get(context.Background(), s.prefix+"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com")
	if err != nil || len(kv.Kvs) != 1 || len(kv.Kvs[0].Value) > 600<<10 {
		t.Fatal(err)
	}
	if err := s.UpdateStatus(context.Background(), x.Name, func(*object.Object) error { return nil }); err != nil || s.stored(t, x.Name).ResourceVersion != x.ResourceVersion {
		t.Errorf("nothing changed, but it was written: %v", err)
	}
}

func TestOpenAPIHasBothVersionsAndOurKeywords(t *testing.T) {
	s := serve(t)
	for _, version := range Versions {
		name := "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions." + version + "."
		if s.OpenAPI()[name+"CustomResourceDefinition"] == nil || s.OpenAPI()[name+"CustomResourceDefinitionList"] == nil {
			t.Errorf("no schema called %sCustomResourceDefinition", name)
		}
		props := s.OpenAPI()[name+"JSONSchemaProps"]
		for _, k := range Keywords {
			if _, ok := props.Properties[k]; !ok {
				t.Errorf("%s has no %s", version, k)
			}
		}
	}
}
