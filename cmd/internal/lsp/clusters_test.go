package lsp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/internal/lsp"
)

// farCluster puts a script in place of kubectl, which knows the context far and runs commands to list its CRDs. Tests with
// the real one and a real server are in conformance/scenarios.
func farCluster(t *testing.T, get string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	script := `#!/bin/sh
case " $* " in *' --context=far '*) ;; *) echo "error: no context in: $*" >&2; exit 1;; esac
if [ "$1" = config ]; then printf 'far\nhttps://far.example.com'; exit; fi
` + get
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
}

// listing is what kubectl prints for CRDs.
func listing(t *testing.T, crds ...string) string {
	t.Helper()
	var items []json.RawMessage
	for _, crd := range crds {
		text, err := yaml.YAMLToJSON([]byte(crd))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, text)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "list.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const badCronTab = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec: {schedule: x, polici: Allow}\n"

var far = map[string]any{"cluster": map[string]any{"context": "far"}}

func TestCRDsOfCluster(t *testing.T) {
	t.Run("editor", func(t *testing.T) {
		farCluster(t, "cat "+listing(t, crontabs))
		c := start(t, nil, far)
		c.open("a.yaml", badCronTab)
		c.diagnostics("a.yaml", 1, has("field-unknown"))
		// The schema of a field is in the cache.
		var l lsp.Location
		c.call("textDocument/definition", map[string]any{"textDocument": map[string]any{"uri": c.uri("a.yaml")}, "position": lsp.Position{Line: 3, Character: 8}}, &l)
		if !strings.Contains(l.URI, "/.cache/espalier/clusters/far-") || !strings.HasSuffix(l.URI, "/crontabs.stable.example.com.json") {
			t.Fatalf("%+v", l)
		}
		// A CRD of the workspace comes first, also where the file of the cache is open.
		cached := strings.TrimPrefix(l.URI, "file://")
		text, err := os.ReadFile(cached)
		if err != nil {
			t.Fatal(err)
		}
		c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": l.URI, "languageId": "json", "version": 1, "text": string(text)}})
		c.write("crd.yaml", strings.Replace(crontabs, "policy:", "polici:", 1))
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []map[string]any{{"uri": c.uri("crd.yaml"), "type": 1}}})
		c.diagnostics("a.yaml", 1, has(""))
	})
	t.Run("settings file", func(t *testing.T) {
		farCluster(t, "cat "+listing(t, crontabs))
		c := start(t, map[string]string{".espalier.yaml": "cluster: {context: far}\n"}, nil)
		c.open("a.yaml", badCronTab)
		c.diagnostics("a.yaml", 1, has("field-unknown"))
		// Without the setting the CRDs of the cluster do not count any more.
		c.write(".espalier.yaml", "{}\n")
		c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []map[string]any{{"uri": c.uri(".espalier.yaml"), "type": 2}}})
		c.diagnostics("a.yaml", 1, has("crd-missing"))
	})
}

// A settings file comes with a repository, and a kubeconfig names programs to run.
func TestSettingsFileNamesNoKubeconfig(t *testing.T) {
	farCluster(t, "exit 1")
	c := start(t, map[string]string{".espalier.yaml": "cluster: {context: far, kubeconfig: evil}\n"}, nil)
	c.until("a message", func() bool {
		return len(c.messages) > 0 && strings.Contains(c.messages[0], "reading the settings failed") && strings.Contains(c.messages[0], "kubeconfig")
	})
}

// The cache counts at once, while the cluster does not answer: keys are not kept waiting.
func TestClusterDoesNotAnswer(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "hang")
	farCluster(t, "if [ -e "+flag+" ]; then sleep 120; fi; cat "+listing(t, crontabs))
	c := start(t, nil, far)
	c.open("a.yaml", badCronTab)
	c.diagnostics("a.yaml", 1, has("field-unknown"))
	c.call("shutdown", nil, nil)
	c.notify("exit", nil)
	<-c.ended

	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c = start(t, nil, far)
	begin := time.Now()
	c.open("a.yaml", badCronTab)
	c.diagnostics("a.yaml", 1, has("field-unknown"))
	c.change("a.yaml", 2, change{Text: strings.Replace(badCronTab, "polici", "policy", 1)})
	c.diagnostics("a.yaml", 2, has(""))
	if d := time.Since(begin); d > 50*time.Second {
		t.Errorf("it took %v", d)
	}
	// The server ends although kubectl runs.
	c.call("shutdown", nil, nil)
	c.notify("exit", nil)
	select {
	case <-c.ended:
	case <-time.After(50 * time.Second):
		t.Error("the server does not end")
	}
}

// The user is told once, with what counts instead.
func TestClusterCannotBeRead(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "down")
	list := listing(t, crontabs)
	down := "if [ -e " + flag + " ]; then echo 'the server is down' >&2; exit 1; fi; cat " + list
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	farCluster(t, down)
	c := start(t, nil, far)
	c.open("a.yaml", badCronTab)
	c.diagnostics("a.yaml", 1, has("crd-missing"))
	said := func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		return strings.Join(c.messages, "\n")
	}
	if got := said(); strings.Count(got, "reading the CRDs of the cluster far failed: the server is down. Its CRDs are not known") != 1 {
		t.Errorf("%s", got)
	}
	// Settings that change to another cluster and back have it read again; the message stays the only one.
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": map[string]any{}}})
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": far}})
	c.open("b.yaml", badCronTab)
	c.diagnostics("b.yaml", 1, has("crd-missing"))
	if got := said(); strings.Count(got, "is down") != 1 {
		t.Errorf("%s", got)
	}
	// The cluster is back: its CRDs count, and the next failure is told, with the date of what counts.
	if err := os.Remove(flag); err != nil {
		t.Fatal(err)
	}
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": map[string]any{}}})
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": far}})
	c.diagnostics("a.yaml", 1, has("field-unknown"))
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": map[string]any{}}})
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": far}})
	c.until("the second message", func() bool {
		return len(c.messages) == 2 && strings.Contains(c.messages[1], "is down. Its CRDs are those of 2")
	})
	c.diagnostics("a.yaml", 1, has("field-unknown"))
}
