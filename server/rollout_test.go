package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/server/controllers/rollout"
)

var (
	crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	siteBefore  = schema.GroupVersionResource{Group: "example.com", Version: "v1alpha1", Resource: "sites"}
	siteAfter   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "sites"}
)

const (
	siteV1alpha1 = `{name: v1alpha1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, note: {type: string}}}}}}}`
	siteV1       = `{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}}}}}`
	siteCRD      = `{group: example.com, scope: Namespaced, names: {plural: sites, singular: site, kind: Site, listKind: SiteList}, versions: [%s]}`
	rules        = `{conversions: [{between: [v1alpha1, v1], rules: [{move: {from: spec.size, to: spec.replicas}}], preserve: {v1alpha1: [spec.note]}}]}`
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func createIn(t *testing.T, client dynamic.ResourceInterface, text string) {
	t.Helper()
	succeeds(t, "created", func() error {
		_, err := client.Create(t.Context(), fromYAML(t, text), metav1.CreateOptions{})
		return err
	})
}

// succeeds tries until there is no error.
func succeeds(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// sites starts a server with a CRD in its first version, two objects, and a rollout to another
// version. more are lines of its spec.
func sites(t *testing.T, more ...string) dynamic.Interface {
	t.Helper()
	client := start(t).dynamic(t)
	sitesOn(t, client, more...)
	return client
}

func sitesOn(t *testing.T, client dynamic.Interface, more ...string) {
	t.Helper()
	createIn(t, client.Resource(crdResource), "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: sites.example.com}\nspec: "+fmt.Sprintf(siteCRD, fmt.Sprintf(siteV1alpha1, true)))
	createIn(t, client.Resource(crdResource), string(rollout.CRD))
	for i := range 2 {
		createIn(t, client.Resource(siteBefore).Namespace("default"), fmt.Sprintf("{apiVersion: example.com/v1alpha1, kind: Site, metadata: {name: s%d}, spec: {size: %d, note: words}}", i, i+1))
	}
	createIn(t, client.Resource(rollout.Resource), "apiVersion: espalier.dev/v1alpha1\nkind: CRDRollout\nmetadata: {name: to-v1}\nspec:\n  crd: sites.example.com\n"+
		"  expand: {annotations: {conversion.espalier.dev/rules: '"+rules+"'}, spec: "+fmt.Sprintf(siteCRD, fmt.Sprintf(siteV1alpha1, false)+", "+siteV1)+"}\n"+
		"  contract: {spec: "+fmt.Sprintf(siteCRD, siteV1)+"}\n"+strings.Join(more, ""))
}

// reaches waits until a rollout is in a phase, with a message that begins so.
func reaches(t *testing.T, client dynamic.Interface, phase rollout.Phase, message string) {
	t.Helper()
	succeeds(t, string(phase), func() error {
		o, err := client.Resource(rollout.Resource).Get(t.Context(), "to-v1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		is, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		said, _, _ := unstructured.NestedString(o.Object, "status", "message")
		if is != string(phase) || !strings.HasPrefix(said, message) {
			return fmt.Errorf("it is in %s: %s", is, said)
		}
		return nil
	})
}

func patchRollout(t *testing.T, client dynamic.Interface, patch string) {
	t.Helper()
	if _, err := client.Resource(rollout.Resource).Patch(t.Context(), "to-v1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// specOf reads the spec of an object, as text.
func specOf(t *testing.T, client dynamic.ResourceInterface, name string) string {
	t.Helper()
	o, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(o.Object["spec"])
}

func storedVersions(t *testing.T, client dynamic.Interface) string {
	t.Helper()
	crd, err := client.Resource(crdResource).Get(t.Context(), "sites.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "status", "storedVersions")
	return fmt.Sprint(versions)
}

func TestRollout(t *testing.T) {
	t.Parallel()
	client := sites(t)
	reaches(t, client, rollout.Contract, "Contract waits for approval: ")
	if got := storedVersions(t, client); got != "[v1]" {
		t.Errorf("stored are %s", got)
	}
	// Clients of both versions work.
	for resource, want := range map[schema.GroupVersionResource]string{siteBefore: "map[note:words size:2]", siteAfter: "map[replicas:2]"} {
		if got := specOf(t, client.Resource(resource).Namespace("default"), "s1"); got != want {
			t.Errorf("%s: %s, want %s", resource.Version, got, want)
		}
	}
	patchRollout(t, client, `{"spec":{"approvals":["Contract"]}}`)
	reaches(t, client, rollout.Done, "")
	if got := specOf(t, client.Resource(siteAfter).Namespace("default"), "s0"); got != "map[replicas:1]" {
		t.Errorf("s0 is %s", got)
	}
	crd, err := client.Resource(crdResource).Get(t.Context(), "sites.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if _, ok := crd.GetAnnotations()["conversion.espalier.dev/rules"]; ok || len(versions) != 1 {
		t.Errorf("%d versions, annotations %v", len(versions), crd.GetAnnotations())
	}
}

func TestRolloutUndone(t *testing.T) {
	t.Parallel()
	client := sites(t)
	before := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1")
	reaches(t, client, rollout.Contract, "Contract waits for approval: ")
	patchRollout(t, client, `{"spec":{"undo":true}}`)
	reaches(t, client, rollout.Undone, "")
	if got := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1"); got != before {
		t.Errorf("%s, before %s", got, before)
	}
	crd, err := client.Resource(crdResource).Get(t.Context(), "sites.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) != 1 || versions[0].(map[string]any)["name"] != "v1alpha1" || crd.GetAnnotations()["conversion.espalier.dev/rules"] != "" {
		t.Errorf("the CRD is not as it was: %v, %v", versions, crd.GetAnnotations())
	}
}

// What others change during a rollout is not overwritten.
func TestRolloutOfChangedCRD(t *testing.T) {
	t.Parallel()
	client := sites(t)
	reaches(t, client, rollout.Contract, "Contract waits for approval: ")
	if _, err := client.Resource(crdResource).Patch(t.Context(), "sites.example.com", types.MergePatchType, []byte(`{"spec":{"names":{"shortNames":["st"]}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	patchRollout(t, client, `{"spec":{"approvals":["Contract"]}}`)
	reaches(t, client, rollout.Failed, "the CRD was changed by others")
}

// A spec that others have applied without the rules is not the one that the rollout has planned: the backfill would prune
// what the rules convert.
func TestRolloutNeedsItsRules(t *testing.T) {
	t.Parallel()
	client := sites(t, "  gates: [Expand]\n")
	reaches(t, client, rollout.Expand, "Expand waits for approval: ")
	before := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1")
	crd, err := client.Resource(crdResource).Get(t.Context(), "sites.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Object["spec"] = fromYAML(t, fmt.Sprintf(siteCRD, fmt.Sprintf(siteV1alpha1, false)+", "+siteV1)).Object
	if _, err := client.Resource(crdResource).Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	patchRollout(t, client, `{"spec":{"approvals":["Expand"]}}`)
	reaches(t, client, rollout.Failed, "the CRD was changed by others")
	if got := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1"); got != before {
		t.Errorf("%s, before %s", got, before)
	}
}

// A CRD that was deleted and created again is another one, whatever its generation.
func TestRolloutOfAnotherCRD(t *testing.T) {
	t.Parallel()
	client := sites(t, "  gates: [Expand]\n")
	reaches(t, client, rollout.Expand, "Expand waits for approval: ")
	if _, err := client.Resource(crdResource).Patch(t.Context(), "sites.example.com", types.MergePatchType, []byte(`{"metadata":{"annotations":{"espalier.dev/allow-deletion":"true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Resource(crdResource).Delete(t.Context(), "sites.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createIn(t, client.Resource(crdResource), "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: sites.example.com}\nspec: "+fmt.Sprintf(siteCRD, fmt.Sprintf(siteV1alpha1, true)))
	patchRollout(t, client, `{"spec":{"approvals":["Expand"]}}`)
	reaches(t, client, rollout.Failed, "the CRD was deleted and created again")
}

// Without pre-images, objects go back by conversion.
func TestRolloutUndoneWithoutPreimages(t *testing.T) {
	t.Parallel()
	client := sites(t, "  keepPreimages: 0s\n")
	before := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1")
	reaches(t, client, rollout.Contract, "Contract waits for approval: ")
	patchRollout(t, client, `{"spec":{"undo":true}}`)
	reaches(t, client, rollout.Undone, "")
	if got := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1"); got != before {
		t.Errorf("%s, before %s", got, before)
	}
}

// A migration of the same name that the rollout has not created is left alone: its undo would change other objects.
func TestRolloutLeavesOtherMigrations(t *testing.T) {
	t.Parallel()
	client := sites(t, "  gates: [Backfill]\n")
	reaches(t, client, rollout.Backfill, "Backfill waits for approval: ")
	migrations := schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}
	createIn(t, client.Resource(migrations), "{apiVersion: storagemigration.k8s.io/v1, kind: StorageVersionMigration, metadata: {name: rollout-to-v1, annotations: {migration.espalier.dev/keep-preimages: 1h}}, spec: {resource: {group: '', resource: configmaps}}}")
	patchRollout(t, client, `{"spec":{"approvals":["Backfill"]}}`)
	reaches(t, client, rollout.Backfill, "StorageVersionMigration rollout-to-v1 is not of this rollout")
	patchRollout(t, client, `{"spec":{"undo":true}}`)
	reaches(t, client, rollout.Undone, "")
	m, err := client.Resource(migrations).Get(t.Context(), "rollout-to-v1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.GetAnnotations()["migration.espalier.dev/undo"] != "" {
		t.Error("the rollout has undone it")
	}
}
