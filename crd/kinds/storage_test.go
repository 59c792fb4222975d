package kinds

import (
	"slices"
	"strings"
	"testing"
)

// volumeErrors validates a pod with a volume, and returns the fields and texts of errors
// that are about volumes.
func volumeErrors(t *testing.T, volume map[string]any) []string {
	t.Helper()
	pod := Find("", "v1", "pods")
	tree := map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "i"}},
		"volumes":    []any{volume},
	}}
	if _, err := pod.Default(tree); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range pod.Validate(tree, nil, "") {
		if strings.HasPrefix(e.Field, "spec.volumes") {
			found = append(found, e.Error())
		}
	}
	return found
}

// TestVolumes has errors whose fields are not those of the values.
func TestVolumes(t *testing.T) {
	item := map[string]any{"path": "../a", "resourceFieldRef": map[string]any{"containerName": "c", "resource": "limits.disk"}}
	for name, test := range map[string]struct {
		volume map[string]any
		want   []string
	}{
		"disk": {map[string]any{"gcePersistentDisk": map[string]any{"partition": int64(256)}}, []string{
			"spec.volumes[0].persistentDisk.pdName: Required value",
			"spec.volumes[0].persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
		}},
		"item": {map[string]any{"downwardAPI": map[string]any{"items": []any{item}}}, []string{
			"spec.volumes[0].downwardAPI.path: Invalid value: \"../a\": must not contain '..'",
			"spec.volumes[0].downwardAPI.resourceFieldRef.resource: Unsupported value: \"limits.disk\": supported values: \"limits.cpu\", " +
				"\"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", \"requests.memory\"",
		}},
		"second source": {map[string]any{"emptyDir": map[string]any{}, "nfs": map[string]any{}}, []string{
			"spec.volumes[0].nfs: Forbidden: may not specify more than 1 volume type",
		}},
		"none": {map[string]any{}, nil},
	} {
		test.volume["name"] = "v"
		if got := volumeErrors(t, test.volume); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestManyChecks runs more checks in a rule than Kubernetes' cost limit allows.
func TestManyChecks(t *testing.T) {
	class := Find("node.k8s.io", "v1", "runtimeclasses")
	fixed := map[string]any{"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "example.com/a": "1", "wrong": "1"}
	errs := class.Validate(map[string]any{"handler": "h", "overhead": map[string]any{"podFixed": fixed}}, nil, "")
	for _, e := range errs {
		if e.Field != "overhead.limits[wrong]" {
			t.Errorf("unexpected error: %v", e)
		}
	}
	if len(errs) != 2 {
		t.Errorf("%d errors, want 2", len(errs))
	}
}

// TestLimits fills in the limits of containers.
func TestLimits(t *testing.T) {
	ranges := Find("", "v1", "limitranges")
	tree := map[string]any{"spec": map[string]any{"limits": []any{
		map[string]any{"type": "Container", "max": map[string]any{"cpu": "2"}, "min": map[string]any{"memory": "1"}},
		map[string]any{"type": "Pod", "max": map[string]any{"cpu": "2"}},
	}}}
	if _, err := ranges.Prepare(tree, nil); err != nil {
		t.Fatal(err)
	}
	want := `{"limits":[{"default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1"},"max":{"cpu":"2"},"min":{"memory":"1"},"type":"Container"},` +
		`{"max":{"cpu":"2"},"type":"Pod"}]}`
	if got := text(tree["spec"]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCertificates has text that is no certificate.
func TestCertificates(t *testing.T) {
	for format, values := range map[string]map[string]string{
		"trust-anchors": {
			"": "at least one trust anchor must be provided",
			"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "entry 0 does not parse as X.509",
			"-----BEGIN FOO-----\nAAAA\n-----END FOO-----\n":                 "entry 0 has bad block type: FOO",
		},
		"json-object":    {"x": "invalid character 'x' looking for beginning of value"},
		"certificates":   {"x": "issued certificate chain must contain at least one certificate"},
		"pkcs10":         {"AAAA": "must be a valid PKCS#10 CSR", "!": "must be a valid PKCS#10 CSR"},
		"projected-path": {"..a": "must not start with '..'", "../a": "must not contain '..'", "/a": "must be a relative path"},
		"driver-name":    {"a_b": "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
	} {
		for value, want := range values {
			if got, err := check(format, value); err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%s %q: %q, %v, want %q", format, value, got, err, want)
			}
		}
	}
	if got, _ := check("driver-name", "CSI.example.com"); len(got) > 0 {
		t.Errorf("driver-name: %q", got)
	}
}

// TestOverlaps warns of paths that are in the way of others.
func TestOverlaps(t *testing.T) {
	pod := Find("", "v1", "pods")
	for _, test := range []struct {
		paths []string
		want  []string
	}{
		{[]string{"a/b", "a", "a/c"}, []string{"\"a\" with \"a/b\"", "\"a/c\" with \"a\""}},
		{[]string{"a", "a", "a"}, []string{"\"a\" with \"a\""}},
		{[]string{"a/b", "a/b/c", "a"}, []string{"\"a/b/c\" with \"a/b\"", "\"a\" with \"a/b\"", "\"a\" with \"a/b/c\""}},
		{[]string{"ab", "a", "a.b", "b/a"}, nil},
	} {
		var items []any
		for _, path := range test.paths {
			items = append(items, map[string]any{"key": "k", "path": path})
		}
		volume := map[string]any{"name": "v", "configMap": map[string]any{"name": "x", "items": items}}
		got := pod.Warnings(map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{"volumes": []any{volume}}}, nil)
		for i := range test.want {
			test.want[i] = "volume \"v\" (ConfigMap \"x\"): overlapping paths: " + test.want[i]
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.paths, got, test.want)
		}
	}
}
