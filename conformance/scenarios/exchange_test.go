package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	crdsPath  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	boatsPath = "/apis/harbour.example.com/v1/namespaces/default/boats"
)

// What one side has written the other serves, identical, and what it then changes the first one serves again.
func TestEachOpensTheOthersEtcd(t *testing.T) {
	pairs := map[string][2]launch.Kind{
		"ours after upstream": {launch.Upstream, launch.Espalier},
		"upstream after ours": {launch.Espalier, launch.Upstream},
	}
	if against == launch.Upstream {
		pairs = map[string][2]launch.Kind{"upstream after upstream": {launch.Upstream, launch.Upstream}}
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		t.Run(name, func(t *testing.T) { exchange(t, pairs[name][0], pairs[name][1]) })
	}
}

func exchange(t *testing.T, first, second launch.Kind) {
	prefix := prefix()
	s := alike(t, first, prefix)
	c := dial(t, s)
	post(t, c, crdsPath, boatsCRD(t))
	served(t, c)
	for i, spec := range []string{
		`{"owner":"ada"}`,
		`{"owner":"grace <&> \u2028 é 𝄞","colour":"red","length":9.50,"crew":[{"name":"a"},{"name":"b","rank":"captain"}]}`,
		`{"owner":"1e3","berths":10,"length":1e1}`,
		`{"owner":"n","length":-0.25}`,
		`{"owner":"z","berths":0,"length":12,"crew":[]}`,
	} {
		post(t, c, boatsPath, fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"boat-%d","labels":{"n":"%d"},"annotations":{"a":"x\ty"},"finalizers":["example.com/f"]},"spec":%s,"status":{"phase":"dropped"}}`, i, i, spec))
	}
	expect(t, c, http.StatusOK, http.MethodPut, boatsPath+"/boat-0/status", strings.Replace(string(get(t, c, boatsPath+"/boat-0")), `"spec"`, `"status":{"phase":"Moored","moored":1},"spec"`, 1))
	before := view(t, c)
	stop(t, s)

	s = alike(t, second, prefix)
	c = dial(t, s)
	served(t, c)
	compare(t, before, view(t, c))
	// A write that changes nothing must not write: the stored bytes are equal.
	keys := stored(t, prefix+"/harbour.example.com/")
	for i := range 5 {
		path := fmt.Sprintf("%s/boat-%d", boatsPath, i)
		expect(t, c, http.StatusOK, http.MethodPut, path, string(get(t, c, path)))
	}
	for key, revision := range stored(t, prefix+"/harbour.example.com/") {
		if keys[key] != revision {
			t.Errorf("%s was rewritten by an update that changes nothing", key)
		}
	}
	expect(t, c, http.StatusOK, http.MethodPut, boatsPath+"/boat-1", strings.Replace(string(get(t, c, boatsPath+"/boat-1")), `"red"`, `"green"`, 1))
	post(t, c, boatsPath, `{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"second"},"spec":{"owner":"joan"}}`)
	before = view(t, c)
	stop(t, s)

	s = alike(t, first, prefix)
	c = dial(t, s)
	served(t, c)
	compare(t, before, view(t, c))
}

// view is everything that a server shows of boats.
func view(t *testing.T, c *wire.Conn) map[string]any {
	t.Helper()
	var list struct{ Items []map[string]any }
	decode(t, get(t, c, boatsPath), &list)
	var crd map[string]any
	decode(t, get(t, c, crdsPath+"/"+boats), &crd)
	view := map[string]any{"spec of the CRD": crd["spec"], "uid of the CRD": crd["metadata"].(map[string]any)["uid"]}
	for _, o := range list.Items {
		view[o["metadata"].(map[string]any)["name"].(string)] = o
	}
	var one map[string]any
	decode(t, get(t, c, boatsPath+"/boat-1"), &one)
	view["boat-1 by name"] = one
	return view
}

func compare(t *testing.T, want, got map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(want[name], got[name]) {
			t.Errorf("%s:\n%s\nand then\n%s", name, encode(t, want[name]), encode(t, got[name]))
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d things, and then %d", len(want), len(got))
	}
}

// stored returns the keys in etcd with the revision of their last change.
func stored(t *testing.T, prefix string) map[string]int64 {
	t.Helper()
	resp, err := etcdClient(t).Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]int64{}
	for _, kv := range resp.Kvs {
		keys[string(kv.Key)] = kv.ModRevision
	}
	return keys
}

// boatsCRD returns the CRD of boats as JSON.
func boatsCRD(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/boats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func served(t *testing.T, c *wire.Conn) {
	t.Helper()
	eventually(t, 30*time.Second, "boats are served", func() bool {
		status, _, _, err := c.Do(t.Context(), http.MethodGet, boatsPath, nil)
		return err == nil && status == http.StatusOK
	})
}

func dial(t *testing.T, s *launch.Server) *wire.Conn {
	t.Helper()
	c, err := wire.Dial(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func post(t *testing.T, c *wire.Conn, path, body string) {
	t.Helper()
	expect(t, c, http.StatusCreated, http.MethodPost, path, body)
}

func get(t *testing.T, c *wire.Conn, path string) []byte {
	t.Helper()
	answer, err := c.Expect(t.Context(), http.StatusOK, http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func expect(t *testing.T, c *wire.Conn, want int, method, path, body string) {
	t.Helper()
	if _, err := c.Expect(t.Context(), want, method, path, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
