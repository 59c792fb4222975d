package customresource

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

const twoVersions = `
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boxes, kind: Box}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}
`

// unreadableBoxes are values of the box "bad" in the namespace "n".
var unreadableBoxes = map[string]string{
	"no JSON":           "garbage",
	"nothing":           "",
	"null":              "null",
	"a number":          "1",
	"half":              `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"bad`,
	"protobuf":          "k8s\x00\n\x0b\n\x02v1\x12\x05Thing",
	"no UTF-8":          "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Box\",\"metadata\":{\"name\":\"\xff\xfe\"}}",
	"a version gone":    `{"apiVersion":"example.com/v0","kind":"Box","metadata":{"name":"bad","namespace":"n"}}`,
	"another group":     `{"apiVersion":"example.org/v1","kind":"Box","metadata":{"name":"bad","namespace":"n"}}`,
	"another kind":      `{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":"bad","namespace":"n"}}`,
	"another name":      `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"good","namespace":"n"}}`,
	"another namespace": `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"bad","namespace":"o"}}`,
	"no metadata":       `{"apiVersion":"example.com/v1","kind":"Box"}`,
	"odd metadata":      `{"apiVersion":"example.com/v1","kind":"Box","metadata":7}`,
	"deep arrays":       strings.Repeat("[", 1<<20),
	"deep objects":      `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"bad","namespace":"n"},"spec":` + deep(200_000, "", "1") + "}",
	"large":             strings.Repeat("x", 1<<20),
}

const lossy = "ignoreStoreReadErrorWithClusterBreakingPotential"

// unsafely are options of a deletion.
const unsafely = `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true%s}`

// One object that cannot be read does not keep a client from the others, whatever is
// wrong with it, and cannot be changed or deleted by accident.
func TestUnreadableObject(t *testing.T) {
	e := start(t)
	e.define(twoVersions)
	e.Do("POST", boxesPath, boxOf("good", `{"a":1}`)).Is(http.StatusCreated)
	for what, value := range unreadableBoxes {
		for _, version := range []string{"v1", "v2"} {
			t.Run(what+" "+version, func(t *testing.T) {
				e.Caller.TB = t
				unreadableRequests(e, strings.Replace(boxesPath, "v1", version, 1), version, value)
			})
		}
	}
}

func unreadableRequests(e *env, path, version, value string) {
	e.TB.Helper()
	now := e.Do("GET", path, "").Is(http.StatusOK).At("metadata.resourceVersion").(string)
	watching := e.Watch(path + "?watch=1&resourceVersion=" + now)
	e.put("/example.com/boxes/n/bad", value)
	for _, query := range []string{"", "?resourceVersion=0", "?limit=1", "?labelSelector=!x", "?fieldSelector=metadata.name!=x"} {
		names := []any{}
		for more := ""; ; {
			answer := e.Do("GET", strings.Replace(path+query, "limit=1", "limit=1&continue="+more, 1), "").Is(http.StatusOK)
			for _, item := range answer.At("items").([]any) {
				names = append(names, item.(map[string]any)["metadata"].(map[string]any)["name"])
			}
			if more, _ = answer.At("metadata.continue").(string); more == "" {
				break
			}
		}
		if fmt.Sprint(names) != "[good]" {
			e.TB.Errorf("%s: %v", query, names)
		}
	}
	body := func(name string) string { return strings.Replace(boxOf(name, `{"a":2}`), "com/v1", "com/"+version, 1) }
	for _, a := range []struct{ method, path, body string }{
		{"GET", path + "/bad", ""}, {"GET", path + "/bad?resourceVersion=0", ""}, {"DELETE", path + "/bad", ""},
		{"PUT", path + "/bad", body("bad")},
	} {
		e.Do(a.method, a.path, a.body).Is(http.StatusInternalServerError).Has("reason", "StorageReadError").
			Mentions("/example.com/boxes/n/bad in etcd, of revision").Mentions(`ignoreStoreReadErrorWithClusterBreakingPotential":true}' | kubectl delete -f - --raw '` + path + "/bad'")
	}
	for _, kind := range []string{"merge", "json", "apply"} {
		patch := map[string]string{"merge": `{"spec":{}}`, "json": `[]`, "apply": body("bad")}[kind]
		e.Patch(kind, path+"/bad?fieldManager=m", patch).Is(http.StatusInternalServerError).Has("reason", "StorageReadError")
	}
	if answer := e.Do("POST", path, body("bad")); answer.Code != http.StatusConflict && answer.Code != http.StatusInternalServerError {
		e.TB.Errorf("create: %d %s", answer.Code, answer.Body)
	}
	if stored := e.stored("/example.com/boxes/n/bad"); stored != value {
		e.TB.Errorf("the value has changed: %.100s", stored)
	}
	e.Do("DELETE", path+"/good", fmt.Sprintf(unsafely, "")).Is(http.StatusConflict)
	for _, more := range []string{`,"preconditions":{"uid":"u"}`, `,"propagationPolicy":"Foreground"`, `,"gracePeriodSeconds":1`, `,"orphanDependents":true`} {
		e.Do("DELETE", path+"/bad", fmt.Sprintf(unsafely, more)).Is(http.StatusUnprocessableEntity)
	}
	e.Do("DELETE", path+"/bad", fmt.Sprintf(unsafely, `,"dryRun":["All"]`)).Is(http.StatusOK)
	e.Do("GET", path+"/bad", "").Is(http.StatusInternalServerError)
	e.Do("DELETE", path+"/bad", fmt.Sprintf(unsafely, "")).Is(http.StatusOK)
	e.Do("GET", path+"/bad", "").Is(http.StatusNotFound)
	// The watch has gone on, and has seen nothing of it.
	e.Do("POST", path, body("bad")).Is(http.StatusCreated)
	event, _ := watching.Next()
	event.Has("type", "ADDED").Has("object.metadata.name", "bad")
	e.Do("DELETE", path+"/bad", "").Is(http.StatusOK)
	event, _ = watching.Next()
	event.Has("type", "DELETED")
	watching.Close()
}

// The warning of a list names what is missing, and only in the namespace that is listed.
func TestUnreadableWarning(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	e.put("/example.com/boxes/n/bad", "no\x01JSON\"")
	for range 3 { // from etcd, then from a cache
		e.Do("GET", boxesPath, "").Is(http.StatusOK).
			Warns("1 of boxes.example.com cannot be read from etcd and are left out: n/bad (couldn't get version/kind; json parse error: invalid character 'o' in literal null (expecting 'u'))")
		e.Do("GET", strings.Replace(boxesPath, "/n/", "/o/", 1), "").Is(http.StatusOK).Warns()
	}
}

// The right to delete objects does not include deleting corrupt ones: that needs its
// own verb.
func TestUnreadableNeedsPermission(t *testing.T) {
	e := start(t, func(o *Options) {
		o.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetVerb() == "unsafe-delete-ignore-read-errors" {
				return authorizer.DecisionNoOpinion, "", nil
			}
			return authorizer.DecisionAllow, "", nil
		})
	})
	e.define(anyBoxes)
	e.put("/example.com/boxes/n/bad", "garbage")
	e.Do("DELETE", boxesPath+"/bad", fmt.Sprintf(unsafely, "")).Is(http.StatusForbidden).Mentions("unsafe-delete-ignore-read-errors")
	if stored := e.stored("/example.com/boxes/n/bad"); stored != "garbage" {
		t.Errorf("stored: %s", stored)
	}
}

// A CRD whose objects are deleted keeps those that cannot be read, and says which.
func TestUnreadableInstances(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	for i := range 3 {
		e.Do("POST", boxesPath, boxOf(fmt.Sprint("good-", i), "{}")).Is(http.StatusCreated)
	}
	e.put("/example.com/boxes/n/bad", "garbage")
	entry := e.catalog.Get("boxes.example.com")
	for range 3 { // from etcd, then from a cache
		left, err := e.server.DeleteInstances(t.Context(), entry)
		if left != 1 || err == nil || !strings.Contains(err.Error(), "1 objects cannot be read: "+e.prefix+"/example.com/boxes/n/bad (") || !strings.Contains(err.Error(), lossy) {
			t.Fatalf("left %d: %v", left, err)
		}
	}
	if all, err := e.etcd.Get(t.Context(), e.prefix+"/example.com/boxes/", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || all.Count != 1 {
		t.Errorf("%d keys are left, %v", all.Count, err)
	}
	e.Do("DELETE", boxesPath+"/bad", fmt.Sprintf(unsafely, "")).Is(http.StatusOK)
	if left, err := e.server.DeleteInstances(t.Context(), entry); left != 0 || err != nil {
		t.Errorf("left %d: %v", left, err)
	}
}

// A CRD is not removed while its prefix in etcd has keys, even if no storage knows them.
func TestForgottenInstances(t *testing.T) {
	e := startWith(t, store.Config{MaxUnreadable: 1})
	e.define(anyBoxes)
	for _, name := range []string{"bad", "worse", "worst"} {
		e.put("/example.com/boxes/n/"+name, "garbage")
	}
	entry := e.catalog.Get("boxes.example.com")
	for range 3 { // from etcd, then from a cache
		if left, err := e.server.DeleteInstances(t.Context(), entry); left != 3 || err == nil {
			t.Fatalf("left %d: %v", left, err)
		}
	}
	e.Do("DELETE", boxesPath+"/bad", fmt.Sprintf(unsafely, "")).Is(http.StatusOK)
	e.Do("DELETE", boxesPath+"/worse", fmt.Sprintf(unsafely, "")).Is(http.StatusOK)
	e.Do("DELETE", boxesPath+"/worst", fmt.Sprintf(unsafely, "")).Is(http.StatusOK)
	// One that lists do not show.
	e.put("/example.com/boxes/n/hidden", `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"hidden","namespace":"n"}}`)
	p := &purge{}
	left, err := e.server.unread(t.Context(), entry, p)
	if left != 1 || err == nil || !strings.Contains(err.Error(), "1 objects are in etcd and in no list. Find them with: etcdctl get --prefix --keys-only "+e.prefix+"/example.com/boxes/.") {
		t.Errorf("left %d: %v", left, err)
	}
}

// Objects of a CRD that is damaged are served as before by a server that knew it, and are
// not denied to exist by one that starts later.
func TestDamagedCRD(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	e.Do("POST", boxesPath, boxOf("a", `{"a":1}`)).Is(http.StatusCreated)
	now := e.Do("GET", boxesPath, "").Is(http.StatusOK).At("metadata.resourceVersion").(string)
	watching := e.Watch(boxesPath + "?watch=1&resourceVersion=" + now)
	defer watching.Close()
	good := e.stored(catalog.Key + "/boxes.example.com")
	e.put(catalog.Key+"/boxes.example.com", "garbage")
	e.put(catalog.Key+"/.", "garbage") // of no group, like a request for no resource
	if err := e.catalog.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Do("GET", boxesPath+"/a", "").Is(http.StatusOK)
	e.Do("POST", boxesPath, boxOf("b", `{"a":1}`)).Is(http.StatusCreated)
	event, _ := watching.Next()
	event.Has("type", "ADDED").Has("object.metadata.name", "b")

	late := startWith(t, store.Config{Config: storagebackend.Config{Prefix: e.prefix}})
	for method, path := range map[string]string{"GET": boxesPath, "DELETE": boxesPath + "/a", "POST": boxesPath} {
		late.Do(method, path, boxOf("c", "{}")).Is(http.StatusServiceUnavailable).Has("reason", "ServiceUnavailable").
			Mentions("the CustomResourceDefinition boxes.example.com is in etcd and cannot be read").
			Mentions("kubectl delete -f - --raw '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.example.com'")
	}
	late.Do("GET", strings.Replace(boxesPath, "boxes", "others", 1), "").Is(http.StatusNotFound)
	late.Do("GET", "/version", "").Is(http.StatusNotFound)
	e.put(catalog.Key+"/boxes.example.com", good)
	late.Do("GET", boxesPath+"/b", "").Is(http.StatusOK)
}

// Deletion of a collection deletes what can be read.
func TestUnreadableInCollection(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	e.Do("POST", boxesPath, boxOf("good", "{}")).Is(http.StatusCreated)
	e.put("/example.com/boxes/n/bad", "garbage")
	e.Do("DELETE", boxesPath, "").Is(http.StatusOK)
	e.Do("GET", boxesPath+"/good", "").Is(http.StatusNotFound)
	e.Do("GET", boxesPath+"/bad", "").Is(http.StatusInternalServerError)
}

// FuzzUnreadable: whatever bytes are at a key, all other objects are served, and what is
// served at the key is an object of its name.
func FuzzUnreadable(f *testing.F) {
	for _, value := range unreadableBoxes {
		if len(value) < 1<<10 {
			f.Add([]byte(value))
		}
	}
	f.Add([]byte(strings.Repeat("[", 1<<10)))
	f.Add([]byte(boxOf("bad", `{"a":1}`)))
	f.Add([]byte(`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"bad","namespace":"n"},"spec":{}}`))
	e := start(f)
	e.define(twoVersions)
	e.Do("POST", boxesPath, boxOf("good", `{"a":1}`)).Is(http.StatusCreated)
	e.Do("GET", boxesPath+"?resourceVersion=0", "").Is(http.StatusOK) // fills a cache
	f.Fuzz(func(t *testing.T, value []byte) {
		e.Caller.TB = t
		put, err := e.etcd.Put(context.Background(), e.prefix+"/example.com/boxes/n/bad", string(value))
		if err != nil {
			t.Skip(err) // etcd has its limits
		}
		one := e.Do("GET", boxesPath+"/bad", "")
		wanted := "[good]"
		if one.Code == http.StatusOK {
			one.Has("metadata.name", "bad").Has("metadata.namespace", "n").Has("kind", "Box")
			wanted = "[bad good]"
		} else {
			one.Is(http.StatusInternalServerError).Has("reason", "StorageReadError")
		}
		for _, query := range []string{"", "?resourceVersionMatch=NotOlderThan&resourceVersion=" + fmt.Sprint(put.Header.Revision), "?resourceVersionMatch=Exact&resourceVersion=" + fmt.Sprint(put.Header.Revision)} {
			for _, version := range []string{"v1", "v2"} {
				var names []string
				for _, item := range e.Do("GET", strings.Replace(boxesPath, "v1", version, 1)+query, "").Is(http.StatusOK).At("items").([]any) {
					names = append(names, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
				}
				if fmt.Sprint(names) != wanted {
					t.Errorf("%s of %s: %v, not %v", query, version, names, wanted)
				}
			}
		}
	})
}

// A CRD is not served if its conversion webhook has a CA bundle that cannot be decoded.
func TestUndecodableBundle(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	e.Do("GET", boxesPath, "").Is(http.StatusOK)
	e.define(anyBoxes, func(d map[string]any) {
		d["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/", "caBundle": "?"},
		}}
	})
	e.adopted()
	if n := e.server.Len(); n != 0 {
		t.Errorf("%d resources are open", n)
	}
	e.Do("GET", boxesPath, "").Is(http.StatusInternalServerError)
}
