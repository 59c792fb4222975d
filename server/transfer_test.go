package server_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/archive"
	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/tenants"
)

// encrypted has a server encrypt secrets and custom resources by a key of 16 bytes.
func encrypted(t *testing.T, key string) func(*server.Options) {
	t.Helper()
	return func(o *server.Options) {
		o.Etcd.EncryptionProviderConfigFilepath = certtest.File(t, "encryption.yaml", fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, webs.example.com]
  providers:
  - aesgcm: {keys: [{name: one, secret: %s}]}
`, key))
	}
}

func allKinds(o *server.Options) { o.Kinds = server.KindsAll }

// archivePath is where the archive of a tenant is sent and taken.
func (r *running) archivePath(name, subresource string) string {
	return r.url + "/apis/espalier.dev/v1alpha1/tenants/" + name + "/" + subresource
}

// export returns the archive of a tenant.
func (r *running) export(t *testing.T, name string) []byte {
	t.Helper()
	code, text := get(t, r.member(t, "system:masters"), r.archivePath(name, "export"))
	if code != http.StatusOK {
		t.Fatalf("export: %d %s", code, text)
	}
	return []byte(text)
}

// take sends an archive to a tenant.
func (r *running) take(t *testing.T, name string, from io.Reader) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.archivePath(name, "import"), from)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.member(t, "system:masters").Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// awaiting creates a tenant for an import.
func (r *running) awaiting(t *testing.T, name string) {
	t.Helper()
	createIn(t, r.dynamic(t).Resource(tenants.Resource), "{apiVersion: espalier.dev/v1alpha1, kind: Tenant, metadata: {name: "+name+", annotations: {espalier.dev/awaits-import: \"true\"}}}")
}

// everything returns all objects, by resource, namespace and name, but those that expire.
func everything(t *testing.T, config *rest.Config) map[string]map[string]any {
	t.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			// Leases change by themselves, and APIServices tell the address of the tenant.
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"events", "leases", "componentstatuses"}, r.Name) {
				continue
			}
			found, err := client.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(r.Name, err)
			}
			for _, o := range found.Items {
				o.SetResourceVersion("")
				all[gv.WithResource(r.Name).GroupResource().String()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
			}
		}
	}
	return all
}

// furnish creates objects of many kinds in a tenant, and returns a token of one of its service accounts.
func furnish(t *testing.T, config *rest.Config) (token string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	define(t, client)
	owner, err := client.Resource(webs).Namespace("default").Create(t.Context(), web("shop", "a<b>&c ünïcode"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web(fmt.Sprintf("web-%d", i), strings.Repeat("x", i*20)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c := typed(t, config)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	about := metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"app": "shop"}, Finalizers: []string{"example.com/keep"}, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "example.com/v1", Kind: "Web", Name: "shop", UID: owner.GetUID(),
	}}}
	core := c.CoreV1()
	must(core.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: about, Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 255}}}, metav1.CreateOptions{}))
	must(core.ConfigMaps("default").Patch(t.Context(), "shop", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shop"},"data":{"c":"applied"}}`), metav1.PatchOptions{FieldManager: "someone"}))
	must(core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "plain text"}}, metav1.CreateOptions{}))
	must(core.Services("default").Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{}))
	must(core.Events("default").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}, metav1.CreateOptions{}))
	must(core.ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}))
	asked, err := core.ServiceAccounts("default").CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(asked, err)
	return asked.Status.Token
}

// A tenant that was exported and imported on another server, which encrypts in another way, has the
// same objects.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	from := start(t, withTenants, allKinds, encrypted(t, "c2VjcmV0IGlzIHNlY3VyZSwgcmVhbGx5IDE2IGJ5dGU="))
	token := furnish(t, from.tenant(t, "shop"))
	file := from.export(t, "shop")
	t.Log("bytes of the file:", len(file))
	before := everything(t, from.within(t, "shop"))

	prefix := ""
	to := start(t, withTenants, allKinds, encrypted(t, "YW5vdGhlciBrZXkgb2Ygc2l4dGVlbiBieXRlcyAhISE="), func(o *server.Options) { prefix = o.Etcd.StorageConfig.Prefix })
	to.awaiting(t, "copy")
	config := to.within(t, "copy")
	refused := func(what string) {
		t.Helper()
		if code, text := get(t, to.member(t, "system:masters"), to.url+"/clusters/copy/api"); code != http.StatusServiceUnavailable || !strings.Contains(text, "import it again, or delete") {
			t.Errorf("%s: the tenant answers %d %s", what, code, text)
		}
	}
	refused("before the import")
	for what, damagedFile := range map[string][]byte{
		"truncated": file[:len(file)-5], "half": file[:len(file)/2], "empty": nil, "no file": []byte("hello"),
		"longer": append(slices.Clone(file), file...), "changed": flipped(file, len(file)/2),
	} {
		if code, text := to.take(t, "copy", bytes.NewReader(damagedFile)); code != http.StatusBadRequest || !strings.Contains(text, "damaged") {
			t.Errorf("%s: %d %s", what, code, text)
		}
		refused(what)
	}
	if code, text := get(t, to.member(t, "system:masters"), to.archivePath("copy", "export")); code != http.StatusConflict {
		t.Errorf("an export of half a tenant: %d %s", code, text)
	}
	began := time.Now()
	if code, text := to.take(t, "copy", bytes.NewReader(file)); code != http.StatusOK {
		t.Fatal(code, text)
	}
	t.Log("import took", time.Since(began))
	after := everything(t, config)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		a, b := asJSON(t, before[name]), asJSON(t, after[name])
		if a != b {
			t.Errorf("%s is\n%s\nwas\n%s", name, b, a)
		}
	}
	for name := range after {
		if before[name] == nil {
			t.Errorf("%s is new", name)
		}
	}
	if len(before) < 350 {
		t.Errorf("only %d objects are compared", len(before))
	}
	if code, text := to.take(t, "copy", bytes.NewReader(file)); code != http.StatusConflict || !strings.Contains(text, "delete this tenant first") {
		t.Errorf("imported again: %d %s", code, text)
	}
	continues(t, config)
	if o, err := to.dynamic(t).Resource(tenants.Resource).Get(t.Context(), "copy", metav1.GetOptions{}); err != nil || len(o.GetAnnotations()) > 0 {
		t.Error(err, o)
	}
	foreign := rest.AnonymousClientConfig(config)
	foreign.BearerToken = token
	if _, err := typed(t, foreign).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token of the former tenant: %v", err)
	}
	etcd, _ := etcdtest.Client(t)
	found, err := etcd.Get(t.Context(), prefix+"-tenants/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	sealed := 0
	for _, kv := range found.Kvs {
		if bytes.Contains(kv.Value, []byte("plain text")) {
			t.Errorf("%s is not encrypted", kv.Key)
		}
		if bytes.HasPrefix(kv.Value, []byte("k8s:enc:aesgcm:")) {
			sealed++
		}
	}
	if sealed < 300 {
		t.Errorf("%d encrypted values", sealed)
	}
}

func flipped(data []byte, at int) []byte {
	data = slices.Clone(data)
	data[at] ^= 0x10
	return data
}

func asJSON(t *testing.T, o map[string]any) string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// continues checks that objects of an imported tenant can be watched and changed, and that controllers
// find them.
func continues(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects := client.Resource(webs).Namespace("default")
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := objects.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	changed, err := objects.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"spec":{"port":8443}}`), metav1.PatchOptions{})
	if err != nil || changed.GetGeneration() != 2 {
		t.Fatal(err, changed)
	}
	select {
	case event := <-w.ResultChan():
		if o, ok := event.Object.(*unstructured.Unstructured); !ok || o.GetName() != "shop" || o.GetUID() != changed.GetUID() {
			t.Errorf("%v", event)
		}
	case <-time.After(patience):
		t.Error("no event")
	}
	if _, err := objects.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"spec":{"port":80000}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an invalid change: %v", err)
	}
}

// An import that was stopped is not served, and can be repeated, also if the first attempt goes on
// later.
func TestStoppedImport(t *testing.T) {
	t.Parallel()
	r := start(t, withTenants, allKinds)
	furnish(t, r.tenant(t, "shop"))
	file := r.export(t, "shop")
	r.awaiting(t, "copy")
	// The first attempt gets all but the end, and then nothing.
	slow, send := io.Pipe()
	ended := make(chan string, 1)
	go func() {
		code, text := r.take(t, "copy", slow)
		ended <- fmt.Sprint(code, text)
	}()
	if _, err := send.Write(file[:len(file)-100]); err != nil {
		t.Fatal(err)
	}
	if code, text := get(t, r.member(t, "system:masters"), r.url+"/clusters/copy/api"); code != http.StatusServiceUnavailable {
		t.Errorf("half a tenant is served: %d %s", code, text)
	}
	if code, text := r.take(t, "copy", bytes.NewReader(file)); code != http.StatusOK {
		t.Fatal(code, text)
	}
	_, _ = send.Write(file[len(file)-100:])
	_ = send.Close()
	if answer := <-ended; !strings.Contains(answer, "another import of it has begun") {
		t.Errorf("the first attempt: %s", answer)
	}
	continues(t, r.within(t, "copy"))
}

// Half an import can be deleted, and what is left of the attempt writes nothing more.
func TestDeletedDuringImport(t *testing.T) {
	t.Parallel()
	prefix := ""
	r := start(t, withTenants, allKinds, func(o *server.Options) { prefix = o.Etcd.StorageConfig.Prefix })
	furnish(t, r.tenant(t, "shop"))
	file := r.export(t, "shop")
	r.awaiting(t, "copy")
	o, err := r.dynamic(t).Resource(tenants.Resource).Get(t.Context(), "copy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slow, send := io.Pipe()
	ended := make(chan string, 1)
	go func() {
		code, text := r.take(t, "copy", slow)
		ended <- fmt.Sprint(code, text)
	}()
	if _, err := send.Write(file[:len(file)-100]); err != nil {
		t.Fatal(err)
	}
	etcd, _ := etcdtest.Client(t)
	keys := func() int64 {
		found, err := etcd.Get(t.Context(), tenants.Prefix(prefix, o.GetUID()), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return found.Count
	}
	succeeds(t, "the import writes", func() error {
		if keys() < 100 {
			return errors.New("few keys yet")
		}
		return nil
	})
	if err := r.dynamic(t).Resource(tenants.Resource).Delete(t.Context(), "copy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "the tenant is gone", func() error {
		_, err := r.dynamic(t).Resource(tenants.Resource).Get(t.Context(), "copy", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	_, _ = send.Write(file[len(file)-100:])
	_ = send.Close()
	if answer := <-ended; !strings.Contains(answer, "deleted meanwhile") {
		t.Errorf("the import: %s", answer)
	}
	if n := keys(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// An archive is a matter of rights of its own, and of the limits of the tenant. Hostile archives
// are refused.
func TestRefusedArchives(t *testing.T) {
	t.Parallel()
	r := start(t, withTenants)
	r.tenant(t, "shop")
	for _, subresource := range []string{"export", "import"} {
		method := map[string]string{"export": http.MethodGet, "import": http.MethodPost}[subresource]
		for who, client := range map[string]*http.Client{"nobody": r.stranger(t), "a user": r.member(t, "users")} {
			req, err := http.NewRequestWithContext(t.Context(), method, r.archivePath("shop", subresource), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s of %s: %d", subresource, who, resp.StatusCode)
			}
		}
	}
	if code, _ := get(t, r.member(t, "system:masters"), r.archivePath("nothing", "export")); code != http.StatusNotFound {
		t.Errorf("a tenant that does not exist: %d", code)
	}
	createIn(t, r.dynamic(t).Resource(tenants.Resource), "{apiVersion: espalier.dev/v1alpha1, kind: Tenant, metadata: {name: copy}, spec: {storage: 1M}}")
	large := strings.Repeat("x", 900_000)
	for want, lines := range map[string][]string{
		"has more than the tenant may have": {configMap("a", large), configMap("b", large)},
		"is there twice":                    {configMap("b", "1"), configMap("b", "1")},
		"are not together":                  {configMap("b", "1"), secret("a"), configMap("c", "1")},
		"CRDs are not first":                {configMap("b", "1"), `{"resource":"customresourcedefinitions.apiextensions.k8s.io","object":{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"}}}`},
		"metadata.name must be":             {`{"resource":"customresourcedefinitions.apiextensions.k8s.io","object":{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"group":"c"}}}`},
		"do not have":                       {`{"resource":"webs.example.com","object":{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"a"}}}`},
		"not valid":                         {`{"resource":"configmaps","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"../../x","namespace":"default"}}}`},
		"if and only if":                    {`{"resource":"configmaps","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}}`},
		"not of the kind":                   {`{"resource":"configmaps","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"default"}}}`},
		"differs from the key":              {`{"resource":"configmaps","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"Metadata":{"name":"x","namespace":"kube-system"}}}`},
		"quantities must match":             {`{"resource":"resourcequotas","object":{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"a","namespace":"default"},"spec":{"hard":{"pods":"9e99999999"}}}}`},
		"the server failed":                 {`{"failed":"the server failed"}`},
	} {
		if code, text := r.take(t, "copy", archiveOf(t, true, lines...)); code != http.StatusBadRequest && code != http.StatusForbidden || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", want, code, text)
		}
	}
	// In a damaged file, what is wrong with an object is not the user's mistake.
	if code, text := r.take(t, "copy", archiveOf(t, false, `{"resource":"configmaps","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}}`)); code != http.StatusBadRequest || !strings.Contains(text, "its checksum is wrong") {
		t.Errorf("an object of a damaged file: %d %s", code, text)
	}
}

func configMap(name, value string) string {
	return `{"resource":"configmaps","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"default"},"data":{"a":"` + value + `"}}}`
}

func secret(name string) string {
	return `{"resource":"secrets","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `","namespace":"default"}}}`
}

// archiveOf is an archive with some lines after the header, whole or with a wrong checksum.
func archiveOf(t *testing.T, whole bool, lines ...string) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	header, err := json.Marshal(archive.Header{Format: archive.Format, Version: archive.Version})
	if err != nil {
		t.Fatal(err)
	}
	text := string(header) + "\n" + strings.Join(lines, "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	if !whole {
		sum[0]++
	}
	if _, err := fmt.Fprintf(w, "%s{\"end\":{\"objects\":%d,\"sha256\":\"%x\"}}\n", text, len(lines), sum); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}
