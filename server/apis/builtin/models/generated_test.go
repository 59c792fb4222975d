package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const apiextensions = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

// generatedDiffers lists where generated OpenAPI definitions differ from ours, for
// types that have both, with the reason. `Definitions` uses the generated ones for
// these types.
var generatedDiffers = map[string]string{
	"io.k8s.api.autoscaling.v1.ScaleSpec/properties/replicas/default: null, want 0":                                             "a marker, and client-go does not apply scales",
	apiextensions + "CustomResourceDefinitionStatus/required: [\"conditions\",\"acceptedNames\",\"storedVersions\"], want null": "markers, as above",
	apiextensions + "CustomResourceDefinitionStatus/properties/conditions/x-kubernetes-list-map-keys: null, want [\"type\"]":    "client-go does not apply definitions",
	apiextensions + "CustomResourceDefinitionStatus/properties/conditions/x-kubernetes-list-type: \"atomic\", want \"map\"":     "client-go does not apply definitions",
	apiextensions + "JSONSchemaProps/properties/x-kubernetes-validations/x-kubernetes-list-map-keys: null, want [\"rule\"]":     "client-go does not apply definitions",
	apiextensions + "JSONSchemaProps/properties/x-kubernetes-validations/x-kubernetes-list-type: null, want \"map\"":            "client-go does not apply definitions",
	"io.k8s.apimachinery.pkg.apis.meta.v1.APIResource/properties/verbs/x-kubernetes-list-type: \"atomic\", want null":           "it has no marker, which means the same",
	apiextensions + "ValidationRule/properties/reason/enum: null, want " +
		`["FieldValueDuplicate","FieldValueForbidden","FieldValueInvalid","FieldValueRequired"]`: "a marker of the type; notes.go is about types that have no generated definition",
}

// TestAgainstGenerated describes types that have generated OpenAPI definitions
// without using these, and compares.
func TestAgainstGenerated(t *testing.T) {
	want := generated.GetOpenAPIDefinitions(nameOnly)
	got := describe(nameOnly, nil, []any{
		apiextensionsv1.CustomResourceDefinition{}, apiextensionsv1.CustomResourceDefinitionList{},
		autoscalingv1.Scale{}, autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv1.HorizontalPodAutoscalerList{},
		metav1.ObjectMeta{}, metav1.ListMeta{}, metav1.Status{}, metav1.DeleteOptions{}, metav1.LabelSelector{}, metav1.Condition{},
		metav1.APIGroupList{}, metav1.APIResourceList{}, metav1.CreateOptions{}, metav1.PartialObjectMetadataList{}, metav1.Table{}, metav1.WatchEvent{},
		metav1.Duration{}, metav1.FieldsV1{}, metav1.MicroTime{}, resource.Quantity{}, runtime.RawExtension{},
	})
	missing := maps.Clone(generatedDiffers)
	for name, ours := range got.definitions {
		theirs, ok := want[name]
		if !ok {
			t.Errorf("%s has no generated definition", name)
			continue
		}
		slices.Sort(theirs.Dependencies)
		if !slices.Equal(ours.Dependencies, theirs.Dependencies) {
			t.Errorf("%s depends on %v, want %v", name, ours.Dependencies, theirs.Dependencies)
		}
		g, w := plain(t, ours.Schema), plain(t, theirs.Schema)
		if docsOf(got.types[name]) == nil {
			undescribe(g)
			undescribe(w)
		}
		for _, difference := range differences(name, g, w) {
			if _, ok := missing[difference]; !ok {
				t.Error(difference)
			}
			delete(missing, difference)
		}
	}
	for difference := range missing {
		t.Errorf("listed, and not so: %s", difference)
	}
}

// undescribe drops the descriptions of a type that does not have its comments
// with it: those of apiextensions, and a few of apimachinery.
func undescribe(v any) {
	if m, ok := v.(map[string]any); ok {
		if _, text := m["description"].(string); text {
			delete(m, "description")
		}
		for _, value := range m {
			undescribe(value)
		}
	}
}

// plain is a value as JSON has it.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(v)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// differences lists where two JSON values differ.
func differences(path string, got, want any) (list []string) {
	g, gotMap := got.(map[string]any)
	w, wantMap := want.(map[string]any)
	if !gotMap || !wantMap {
		if a, b := text(got), text(want); a != b {
			list = append(list, fmt.Sprintf("%s: %s, want %s", path, a, b))
		}
		return list
	}
	keys := maps.Clone(g)
	maps.Copy(keys, w)
	for key := range keys {
		list = append(list, differences(path+"/"+key, g[key], w[key])...)
	}
	return list
}

// text is a value in JSON.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
