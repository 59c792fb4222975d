package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
)

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	migrations = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}
	policies   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings   = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

// cluster is a running server with its etcd.
type cluster struct {
	client dynamic.Interface
	etcd   *clientv3.Client
}

func newCluster(server *launch.Server, etcd *launch.Etcd) (*cluster, error) {
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		return nil, err
	}
	direct, err := etcd.Client()
	return &cluster{client, direct}, err
}

// trial is a case: what is done to objects or to the server before the migration.
type trial struct {
	name  string
	spoil func(ctx context.Context, w *cluster, group string) error
}

const objects = 30

// versions are those of the CRDs.
var versions = []string{"v1", "v2"}

var cases = []trial{
	{name: "nothing in the way"},
	{name: "a policy refuses updates of one object", spoil: refuseUpdates},
	{name: "new schema refuses one object", spoil: tighten},
	{name: "one object in etcd is no JSON", spoil: func(ctx context.Context, w *cluster, group string) error {
		_, err := w.etcd.Put(ctx, "/registry/"+group+"/things/team/bad", "{")
		return err
	}},
	{name: "one object is stored in a version that is gone", spoil: func(ctx context.Context, w *cluster, group string) error {
		_, err := w.etcd.Put(ctx, "/registry/"+group+"/things/team/bad",
			`{"apiVersion":"`+group+`/v0","kind":"Thing","metadata":{"name":"bad","namespace":"team","uid":"1","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"a":"x"}}`)
		return err
	}},
	{name: "the CRD's storage version changes back at once", spoil: func(ctx context.Context, w *cluster, group string) error {
		go func() { _ = w.storage(ctx, group, "v1") }() // while the migration begins; either order must end well
		return nil
	}},
}

// result is what is there after a migration.
type result struct {
	name    string
	state   string
	message string
	trimmed []string       // status.storedVersions
	stored  map[string]int // objects by the version that they are stored in
	took    time.Duration
}

// true reports whether storedVersions names all versions that objects are stored in. What a case has put into etcd itself, in
// a version that the CRD never had, is not among them.
func (r *result) true() bool {
	for version := range r.stored {
		if slices.Contains(versions, version) && !slices.Contains(r.trimmed, version) {
			return false
		}
	}
	return true
}

// String describes it.
func (r *result) String() string {
	answer := "true"
	if !r.true() {
		answer = "NOT TRUE"
	}
	return fmt.Sprintf("%-50s %-10s storedVersions %v, objects by stored version %v: %s (%v) %s", r.name, r.state, r.trimmed, r.stored, answer, r.took.Round(100*time.Millisecond), r.message)
}

// run runs a case in a group of its own.
func (w *cluster) run(ctx context.Context, c trial) (*result, error) {
	group := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(c.name, "'", "")), " ", "-") + ".example.com"
	if err := w.prepare(ctx, group); err != nil {
		return nil, err
	}
	if c.spoil != nil {
		if err := c.spoil(ctx, w, group); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{"resource": map[string]any{"group": group, "resource": "things"}},
	}}
	if _, err := w.client.Resource(migrations).Create(ctx, m, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	r := &result{name: c.name, state: "pending", stored: map[string]int{}}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, *within, true, func(ctx context.Context) (bool, error) {
		m, err := w.client.Resource(migrations).Get(ctx, "things."+group, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			if condition["status"] == "True" {
				r.state, r.message = fmt.Sprint(condition["type"]), fmt.Sprint(condition["message"])
				if r.state != "Running" {
					return true, nil
				}
			}
		}
		return false, nil
	})
	if err != nil && !wait.Interrupted(err) {
		return nil, err
	}
	r.took = time.Since(began)
	launch.Pause(ctx, time.Second) // what a controller does after it has written the condition
	return r, w.look(ctx, group, r)
}

// look reads what etcd and the CRD have.
func (w *cluster) look(ctx context.Context, group string, r *result) error {
	crd, err := w.client.Resource(crds).Get(ctx, "things."+group, metav1.GetOptions{})
	if err != nil {
		return err
	}
	r.trimmed, _, _ = unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	all, err := w.etcd.Get(ctx, "/registry/"+group+"/things/", clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range all.Kvs {
		var o struct {
			APIVersion string `json:"apiVersion"`
		}
		_ = yaml.Unmarshal(kv.Value, &o) // what is no JSON has no version
		_, version, _ := strings.Cut(o.APIVersion, "/")
		r.stored[version]++
	}
	return nil
}

func manifest(group, storage, more string) string {
	version := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"%s}}}}}}}`, name, name == storage, more)
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.%s"},"spec":{"group":%q,"scope":"Namespaced",
		"names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[%s,%s]}}`, group, group, version("v1"), version("v2"))
}

// prepare makes a CRD with objects in v1, and v2 the storage version.
func (w *cluster) prepare(ctx context.Context, group string) error {
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON([]byte(manifest(group, "v1", ""))); err != nil {
		return err
	}
	if _, err := w.client.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	things := w.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Namespace("team")
	for i := range objects {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": fmt.Sprintf("thing-%d", i)}, "spec": map[string]any{"a": fmt.Sprint(i)},
		}}
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := things.Create(ctx, o, metav1.CreateOptions{})
			if apierrors.IsNotFound(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && err != nil {
				return false, nil // not yet served
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return w.storage(ctx, group, "v2")
}

// storage makes a version the storage version, and waits until writes use it.
func (w *cluster) storage(ctx context.Context, group, version string) error {
	if err := w.apply(ctx, group, manifest(group, version, "")); err != nil {
		return err
	}
	things := w.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Namespace("team")
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := things.Patch(ctx, "thing-0", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"at":"%d"}}}`, time.Now().UnixNano()), metav1.PatchOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not yet served
		}
		got, err := w.etcd.Get(ctx, "/registry/"+group+"/things/team/thing-0")
		return err == nil && len(got.Kvs) == 1 && strings.Contains(string(got.Kvs[0].Value), `"apiVersion":"`+group+"/"+version+`"`), err
	})
}

func (w *cluster) apply(ctx context.Context, group, text string) error {
	_, err := w.client.Resource(crds).Patch(ctx, "things."+group, types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "migration", Force: new(true)})
	return err
}

// tighten makes the schema refuse what is stored.
func tighten(ctx context.Context, w *cluster, group string) error {
	return w.apply(ctx, group, manifest(group, "v2", `,"maxLength":1`))
}

// refuseUpdates refuses updates of one object by a policy.
func refuseUpdates(ctx context.Context, w *cluster, group string) error {
	for resource, text := range map[schema.GroupVersionResource]string{
		policies: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"frozen"},"spec":{"failurePolicy":"Fail",
			"matchConstraints":{"resourceRules":[{"apiGroups":["` + group + `"],"apiVersions":["*"],"operations":["UPDATE"],"resources":["*"]}]},
			"validations":[{"expression":"object.metadata.name != 'thing-7'","message":"it is frozen"}]}}`,
		bindings: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"frozen"},"spec":{"policyName":"frozen","validationActions":["Deny"]}}`,
	} {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			return err
		}
		if _, err := w.client.Resource(resource).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	things := w.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Namespace("team")
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := things.Patch(ctx, "thing-7", types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
}
