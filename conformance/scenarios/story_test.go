package scenarios

import (
	"strings"
	"testing"
)

const job = "/operations.example.com/maintenancenightlyjobs/default/backdoor"

// The story of the blog post on structural schemas: an unspecified field waits in etcd until the schema specifies it.
func TestMaintenanceNightlyJob(t *testing.T) {
	needsDiscovery(t)
	prefix := prefix()
	k := newKubectl(t, alike(t, against, prefix))
	k.install("jobs.yaml", "maintenancenightlyjobs.operations.example.com")
	k.fails([]string{`unknown field "spec.privileged"`}, "create", "-f", "job.yaml")
	k.says([]string{`Warning: unknown field "spec.privileged"`, "created"}, "create", "--validate=warn", "-f", "job.yaml")

	client := etcdClient(t)
	stored, err := client.Get(t.Context(), prefix+job)
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("the job in etcd: %v, %v", stored, err)
	}
	value := string(stored.Kvs[0].Value)
	if strings.Contains(value, "privileged") || !strings.Contains(value, "az1-master1") {
		t.Errorf("etcd holds %s", value)
	}

	// A job of the time before pruning is in etcd with the field.
	malicious := strings.Replace(value, `"spec":{`, `"spec":{"privileged":true,`, 1)
	malicious = strings.Replace(malicious, `"name":"backdoor"`, `"name":"old"`, 1)
	if _, err := client.Put(t.Context(), prefix+strings.Replace(job, "backdoor", "old", 1), malicious); err != nil {
		t.Fatal(err)
	}
	if out := k.ok("get", "maintenancenightlyjobs", "-o", "yaml"); strings.Contains(out, "privileged") || !strings.Contains(out, "name: old") {
		t.Errorf("the field is served from etcd:\n%s", out)
	}
	k.ok("annotate", "maintenancenightlyjob", "old", "seen=yes")
	stored, err = client.Get(t.Context(), prefix+strings.Replace(job, "backdoor", "old", 1))
	if err != nil || len(stored.Kvs) != 1 || strings.Contains(string(stored.Kvs[0].Value), "privileged") {
		t.Errorf("an update leaves the field in etcd: %v, %v", stored, err)
	}

	// The team learns the field; the night comes.
	k.ok("patch", "crd", "maintenancenightlyjobs.operations.example.com", "--type=json", "-p",
		`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/privileged","value":{"type":"boolean"}}]`)
	if out := k.ok("get", "maintenancenightlyjobs", "-o", "jsonpath={.items[*].spec.privileged}"); out != "" {
		t.Errorf("jobs have become privileged: %s", out)
	}
	k.says([]string{"replaced"}, "replace", "-f", "job.yaml")
	k.says([]string{"true"}, "get", "maintenancenightlyjob", "backdoor", "-o", "jsonpath={.spec.privileged}")
}

// The blog post's non-structural schema is refused in v1, and taken with a condition in v1beta1, where nothing is pruned.
func TestNonStructuralSchema(t *testing.T) {
	needsDiscovery(t)
	prefix := prefix()
	k := newKubectl(t, alike(t, against, prefix))
	const schema = `
      properties:
        spec:
          type: object
          properties:
            command: {type: string, minLength: 1}
            shell: {type: string, minLength: 1}
            machines: {type: array, items: {type: string, pattern: "^[a-z0-9]+(-[a-z0-9]+)*$"}}
          oneOf:
          - {properties: {command: {type: string}}, required: [command]}
          - {properties: {shell: {type: string}}, required: [shell]}
          not: {properties: {privileged: {}}, required: [privileged, none]}
      required: [spec]
`
	const names = "metadata: {name: maintenancenightlyjobs.operations.example.com}\nspec:\n  group: operations.example.com\n  scope: Namespaced\n" +
		"  names: {plural: maintenancenightlyjobs, singular: maintenancenightlyjob, kind: MaintenanceNightlyJob}\n"
	v1 := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" + names + "  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n     openAPIV3Schema:" + strings.ReplaceAll(schema, "\n", "\n  ")
	if out, code := k.feed(v1, "create", "--validate=false", "-f", "-"); code == 0 || !strings.Contains(out, "type: Required value: must not be empty at the root") {
		t.Errorf("a non-structural schema in v1: %d\n%s", code, out)
	}
	v1beta1 := "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n" + names + "  version: v1\n  preserveUnknownFields: true\n  validation:\n    openAPIV3Schema:" + schema
	if out, code := k.feed(v1beta1, "create", "--validate=false", "-f", "-"); code != 0 {
		t.Fatalf("a non-structural schema in v1beta1: %s", out)
	}
	k.ok("wait", "--for=condition=Established", "crd/maintenancenightlyjobs.operations.example.com", "--timeout=30s")
	k.says([]string{"condition met"}, "wait", "--for=condition=NonStructuralSchema", "crd/maintenancenightlyjobs.operations.example.com", "--timeout=30s")
	k.says([]string{"created"}, "create", "--validate=false", "-f", "job.yaml")
	stored, err := etcdClient(t).Get(t.Context(), prefix+job)
	if err != nil || len(stored.Kvs) != 1 || !strings.Contains(string(stored.Kvs[0].Value), `"privileged":true`) {
		t.Errorf("without pruning the field is persisted: %v, %v", stored, err)
	}
}
