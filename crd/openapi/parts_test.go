package openapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// pathsOf returns, by path, the methods of a resource.
func pathsOf(t *testing.T, r Resource, f Format) map[string][]string {
	t.Helper()
	var all map[string]map[string]any
	if err := json.Unmarshal([]byte("{"+string(AppendPaths(nil, r, f))+"}"), &all); err != nil {
		t.Fatal(err)
	}
	methods := map[string][]string{}
	for path, item := range all {
		for name := range item {
			if name != "parameters" {
				methods[path] = append(methods[path], name)
			}
		}
		slices.Sort(methods[path])
	}
	return methods
}

func TestVerbsAndParts(t *testing.T) {
	for _, f := range []Format{V2, V3} {
		review := Resource{Group: "authorization.k8s.io", Version: "v1", Plural: "reviews", Kind: "Review", ListKind: "Review", Model: "m.Review", ListModel: "m.Review", Namespaced: true, Verbs: []string{"create"}}
		if got := pathsOf(t, review, f); len(got) != 1 || strings.Join(got["/apis/authorization.k8s.io/v1/namespaces/{namespace}/reviews"], " ") != "post" {
			t.Errorf("what can only be created has %v", got)
		}
		namespaces := Resource{
			Version: "v1", Plural: "namespaces", Kind: "Namespace", ListKind: "NamespaceList", Model: "m.Namespace", ListModel: "m.NamespaceList", Status: true, Typed: true,
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}, Parts: []Part{{Name: "finalize", Verbs: []string{"update"}}},
		}
		got := pathsOf(t, namespaces, f)
		for path, want := range map[string]string{
			"/api/v1/namespaces":                 "get post",
			"/api/v1/namespaces/{name}":          "delete get patch put",
			"/api/v1/namespaces/{name}/status":   "get patch put",
			"/api/v1/namespaces/{name}/finalize": "put",
		} {
			if strings.Join(got[path], " ") != want {
				t.Errorf("%s has %v", path, got[path])
			}
		}
		data := string(AppendPaths(nil, namespaces, f))
		for _, text := range []string{"replaceCoreV1NamespaceFinalize", "replace finalize of the specified Namespace", "application/strategic-merge-patch+json", "application/vnd.kubernetes.protobuf"} {
			if !strings.Contains(data, text) {
				t.Errorf("there is no %q", text)
			}
		}
		if strings.Contains(string(AppendPaths(nil, review, f)), "protobuf") {
			t.Error("what has no Go type is in protobuf")
		}
	}
}
