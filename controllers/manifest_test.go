package controllers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
)

type objects = []*unstructured.Unstructured

// moduleDir returns the folder in the module cache of a module that the module in folder requires.
func moduleDir(t *testing.T, folder, module string) string {
	t.Helper()
	root, err := launch.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = filepath.Join(root, "controllers", folder), append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Dir
}

// A chart is what Helm needs: where its files are, and where in a chart they would be once it is packaged.
type chart struct {
	release   string
	namespace string
	values    map[string]any
	files     map[string]string // folder on disk → folder in the chart
}

// render returns the objects of a chart, as `helm template --include-crds` would print them.
func (w *environment) render(t *testing.T, c chart) objects {
	t.Helper()
	var files []*archive.BufferedFile
	for from, to := range c.files {
		files = append(files, packaged(t, from, to)...)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	version, err := w.kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	kube, err := common.ParseKubeVersion(version.GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	capabilities.KubeVersion = *kube
	release := common.ReleaseOptions{Name: c.release, Namespace: c.namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(loaded, c.values, release, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	var all objects
	for _, crd := range loaded.CRDObjects() {
		all = append(all, parse(t, crd.File.Data)...)
	}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			all = append(all, parse(t, []byte(text))...)
		}
	}
	return all
}

// packaged reads the files of a folder as a packaged chart has them: cert-manager's release process writes Chart.yaml from a template.
func packaged(t *testing.T, from, to string) []*archive.BufferedFile {
	t.Helper()
	var files []*archive.BufferedFile
	err := fs.WalkDir(os.DirFS(from), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(from, path))
		if err != nil {
			return err
		}
		name := strings.Replace(filepath.ToSlash(filepath.Join(to, path)), "Chart.template.yaml", "Chart.yaml", 1)
		files = append(files, &archive.BufferedFile{Name: name, Data: data})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// kustomize returns the objects of a kustomization.
func (w *environment) kustomize(t *testing.T, dir string) objects {
	t.Helper()
	return parse(t, []byte(w.do(t, "", "kustomize", dir)))
}

// parse reads the documents of a YAML file.
func parse(t *testing.T, data []byte) objects {
	t.Helper()
	var all objects
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// onLocalhost turns what leads to a Service into what leads to a port of this machine: webhooks get a URL, and the certificate of the
// Service is valid for localhost too. There are no Services here; nothing else is changed.
func onLocalhost(t *testing.T, all objects, port int) {
	t.Helper()
	for _, o := range all {
		switch o.GetKind() {
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			if err != nil {
				t.Fatal(err)
			}
			for _, hook := range hooks {
				toURL(hook.(map[string]any)["clientConfig"], port)
			}
			o.Object["webhooks"] = hooks
		case "CustomResourceDefinition":
			config, found, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
			if err != nil {
				t.Fatal(err)
			}
			if found {
				toURL(config, port)
			}
		case "Certificate":
			names, _, err := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
			if err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedStringSlice(o.Object, append(names, "localhost"), "spec", "dnsNames"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// kinds returns the distinct kinds of objects, sorted.
func kinds(all objects) []string {
	var names []string
	for _, o := range all {
		names = append(names, o.GroupVersionKind().GroupKind().String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}
