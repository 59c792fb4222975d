package scenarios

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	widgets     = "/apis/bench.example.com/%s/namespaces/default/widgets"
	rulesOfCRDs = "conversion.espalier.dev/rules"
)

// The server of Kubernetes that calls `espalier webhook` gives the same objects, in every version, as our server that
// has the rules in the CRD.
func TestStockServerConvertsByRules(t *testing.T) {
	rules := readFile(t, "../cmd/bench-conversion/crd.yaml")
	url, authority := serveRules(t, rules)
	ours := startWidgets(t, launch.Espalier, rules, nil)
	stock := startWidgets(t, launch.Upstream, rules, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(authority)},
	}})
	both := []*wire.Conn{ours, stock}
	write := func(method, version, path, spec string) {
		t.Helper()
		name := strings.TrimPrefix(path, "/")
		if name == "" {
			name = strings.Split(spec, `"`)[1]
			spec = strings.TrimPrefix(spec, `"`+name+`"`)
		}
		for _, c := range both {
			revision := ""
			if method == http.MethodPut {
				var o struct {
					Metadata struct{ ResourceVersion string }
				}
				decode(t, get(t, c, fmt.Sprintf(widgets, version)+"/"+name), &o)
				revision = fmt.Sprintf(`,"resourceVersion":%q`, o.Metadata.ResourceVersion)
			}
			status := map[string]int{http.MethodPost: http.StatusCreated, http.MethodPut: http.StatusOK}[method]
			expect(t, c, status, method, fmt.Sprintf(widgets, version)+path,
				fmt.Sprintf(`{"apiVersion":"bench.example.com/%s","kind":"Widget","metadata":{"name":%q%s},"spec":%s}`, version, name, revision, spec))
		}
	}
	same := func(when string) {
		t.Helper()
		for _, version := range []string{"v1", "v1alpha1"} {
			a, b := specs(t, ours, version), specs(t, stock, version)
			if len(a) == 0 || !reflect.DeepEqual(a, b) {
				t.Errorf("%s, in %s:\nour server     %s\nstock server   %s", when, version, encode(t, a), encode(t, b))
			}
		}
	}
	write(http.MethodPost, "v1", "", `"new"{"capacity":{"size":3,"unit":"Gi"},"hosts":["a","b"],"image":{"name":"i","tag":"1"},"server":"db","port":5432,"mode":"a","environment":{"B":"2","A":"1"},"ports":[{"name":"p","number":80,"tls":true}]}`)
	write(http.MethodPost, "v1alpha1", "", `"old"{"size":3,"image":"i","host":"a","address":"db:5432","mode":"A","env":[{"name":"Z","value":"1"},{"name":"A","value":"2"}],"ports":[{"name":"p","nr":80}]}`)
	write(http.MethodPost, "v1alpha1", "", `"odd"{"address":"no port","mode":"C","env":[{"name":"Z"},{"value":"2"}]}`)
	write(http.MethodPost, "v1", "", `"empty"{}`)
	same("after creates")
	// What the other version cannot hold comes back after an update in it.
	write(http.MethodPut, "v1alpha1", "/new", `{"size":4,"capacity":{"unit":"Gi"},"image":"j","host":"a","address":"db:1","mode":"B"}`)
	write(http.MethodPut, "v1", "/old", `{"capacity":{"size":5},"image":{"name":"i"},"hosts":["a"],"server":"db","port":7,"mode":"b","environment":{"Z":"9","A":"2"}}`)
	same("after updates in the other version")
	// Lists are converted with one call.
	for i := range 300 {
		write(http.MethodPost, "v1", "", fmt.Sprintf(`"many-%03d"{"capacity":{"size":%d},"hosts":["h%d"]}`, i, i, i))
	}
	same("with many objects")
}

// specs returns the objects of a list without what differs between servers, by name.
func specs(t *testing.T, c *wire.Conn, version string) map[string]any {
	t.Helper()
	var list struct{ Items []map[string]any }
	decode(t, get(t, c, fmt.Sprintf(widgets, version)), &list)
	all := map[string]any{}
	for _, o := range list.Items {
		meta := o["metadata"].(map[string]any)
		all[meta["name"].(string)] = map[string]any{
			"apiVersion": o["apiVersion"], "kind": o["kind"], "spec": o["spec"], "annotations": meta["annotations"],
		}
	}
	return all
}

// startWidgets starts a server with the CRD. Where it converts by a webhook, the CRD has no rules.
func startWidgets(t *testing.T, kind launch.Kind, rules string, conversion map[string]any) *wire.Conn {
	t.Helper()
	var d map[string]any
	if err := yaml.Unmarshal([]byte(rules), &d); err != nil {
		t.Fatal(err)
	}
	if conversion != nil {
		delete(d["metadata"].(map[string]any)["annotations"].(map[string]any), rulesOfCRDs)
		d["spec"].(map[string]any)["conversion"] = conversion
	}
	c := dial(t, alike(t, kind, prefix()))
	post(t, c, crdsPath, encode(t, d))
	for _, version := range []string{"v1", "v1alpha1"} {
		if err := c.Until(t.Context(), time.Minute, http.StatusOK, http.MethodGet, fmt.Sprintf(widgets, version), nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// serveRules runs `espalier webhook` with a CRD.
func serveRules(t *testing.T, rules string) (url string, authority []byte) {
	t.Helper()
	w := newWorkstation(t, "")
	signer := must[*launch.CA](t)(launch.NewCA())
	pair, err := signer.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"crd.yaml": []byte(rules), "tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(w.home, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	process, err := launch.Start(t.Context(), w.home, "webhook", filepath.Join(w.bin, "espalier"), "webhook", "--crd", "crd.yaml",
		"--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key", "--bind-address", "127.0.0.1", "--port", "0", "--shutdown-delay", "0s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Stop)
	var address string
	eventually(t, time.Minute, "the webhook listens", func() bool {
		_, after, ok := strings.Cut(process.Output(), "address=")
		address, _, _ = strings.Cut(after, " ")
		return ok
	})
	return "https://" + address + "/convert", signer.CA
}
