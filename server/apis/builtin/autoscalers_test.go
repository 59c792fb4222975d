package builtin

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestAutoscalersInBothVersions writes in one version and reads in the other.
func TestAutoscalersInBothVersions(t *testing.T) {
	e := start(t, Data()...)
	for media, c := range e.clients() {
		name := "first-" + media
		v1, v2 := c.AutoscalingV1().HorizontalPodAutoscalers("default"), c.AutoscalingV2().HorizontalPodAutoscalers("default")
		if _, err := v1.Create(t.Context(), &autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
				"kept":            "yes",
				metricsAnnotation: `[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1"}}]`,
			}},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				MaxReplicas: 3, TargetCPUUtilizationPercentage: ptr.To[int32](7),
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if raw := e.stored("/horizontalpodautoscalers/default/" + name); !strings.Contains(string(raw[:30]), "autoscaling/v2") {
			t.Errorf("stored as %q, not in version 2", raw[:30])
		}
		got, err := v2.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Annotations) != 1 || len(got.Spec.Metrics) != 2 || got.Spec.Metrics[0].Pods == nil || *got.Spec.Metrics[1].Resource.Target.AverageUtilization != 7 {
			t.Errorf("%s: version 2 has %v and metrics %v", media, got.Annotations, got.Spec.Metrics)
		}
		got.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: ptr.To(resource.MustParse("100m"))}}
		if _, err := v2.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := v1.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %v, %v", media, list, err)
		}
		one := list.Items[0]
		if notes := one.Annotations; !strings.Contains(notes[behaviorAnnotation], `"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max"`) ||
			!strings.Contains(notes[behaviorAnnotation], `"Tolerance":"100m"`) || notes["kept"] != "yes" ||
			notes[metricsAnnotation] != `[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1"}}]` {
			t.Errorf("%s: version 1 has the annotations %v", media, notes)
		}
		// The status of version 1 is written as its own kind.
		status := `{"status":{"currentReplicas":2,"currentCPUUtilizationPercentage":44}}`
		if _, err := v1.Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		got, err = v2.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || got.Status.CurrentReplicas != 2 || len(got.Status.CurrentMetrics) != 1 || *got.Status.CurrentMetrics[0].Resource.Current.AverageUtilization != 44 {
			t.Errorf("%s: status %v, %v", media, got.Status, err)
		}
		if _, err := v2.Patch(t.Context(), name, types.ApplyYAMLPatchType, []byte(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","spec":{"maxReplicas":9}}`),
			metav1.PatchOptions{FieldManager: "applier", Force: ptr.To(true)}); err != nil {
			t.Errorf("%s: apply over fields that version 1 owns: %v", media, err)
		}
	}
}

// TestStatusOfAutoscalersIsOwned writes the status in both versions. The writer owns
// nothing but the status.
func TestStatusOfAutoscalersIsOwned(t *testing.T) {
	c := start(t, Data()...).client("application/json")
	v1, v2 := c.AutoscalingV1().HorizontalPodAutoscalers("default"), c.AutoscalingV2().HorizontalPodAutoscalers("default")
	a, err := v1.Create(t.Context(), &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "owned"},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			MaxReplicas: 3, ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
		},
	}, metav1.CreateOptions{FieldManager: "maker"})
	if err != nil {
		t.Fatal(err)
	}
	a.Spec.MaxReplicas, a.Status.CurrentReplicas = 9, 2 // the first is dropped
	if a, err = v1.UpdateStatus(t.Context(), a, metav1.UpdateOptions{FieldManager: "first"}); err != nil {
		t.Fatal(err)
	}
	b, err := v2.Get(t.Context(), a.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Spec.MaxReplicas, b.Status.DesiredReplicas = 9, 2
	if b, err = v2.UpdateStatus(t.Context(), b, metav1.UpdateOptions{FieldManager: "second"}); err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for _, entry := range b.ManagedFields {
		owners[entry.Manager+" "+entry.APIVersion+" "+entry.Subresource] = string(entry.FieldsV1.GetRawBytes())
	}
	if owners["first autoscaling/v1 status"] != `{"f:status":{"f:currentReplicas":{}}}` || owners["second autoscaling/v2 status"] != `{"f:status":{"f:desiredReplicas":{}}}` {
		t.Errorf("managed fields: %v", owners)
	}
}

// TestAutoscalersWithoutPolicies checks that only an absent list of policies has a default.
func TestAutoscalersWithoutPolicies(t *testing.T) {
	c := start(t, Data()...).client("application/json").AutoscalingV2().RESTClient()
	for behavior, want := range map[string]string{
		`{"scaleUp":{}}`:                "",
		`{"scaleUp":{"policies":null}}`: "",
		`{"scaleUp":{"policies":[]}}`:   "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
		`{"scaleDown":{"policies":[]}}`: "spec.behavior.scaleDown.policies: Required value: must specify at least one Policy",
	} {
		body := `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"generateName":"p-"},"spec":{"maxReplicas":3,
			"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"behavior":` + behavior + `}}`
		err := c.Post().AbsPath("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", behavior, err)
		}
	}
}

// TestAutoscalerNotesAreUntrusted reads annotations that are no JSON or name no metric.
func TestAutoscalerNotesAreUntrusted(t *testing.T) {
	c := start(t, Data()...).client("application/json").AutoscalingV1().HorizontalPodAutoscalers("default")
	create := func(notes map[string]string) (*autoscalingv1.HorizontalPodAutoscaler, error) {
		return c.Create(t.Context(), &autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Annotations: notes},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				MaxReplicas: 3, ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			},
		}, metav1.CreateOptions{})
	}
	for _, name := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation} {
		for _, text := range []string{"x", "{", "null", "[]", "[null]", "3"} {
			got, err := create(map[string]string{name: text})
			if name == metricsAnnotation && text == "[null]" {
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.metrics[0].type: Required value: must specify a metric source type") {
					t.Errorf("%s %s: %v", name, text, err)
				}
				continue
			}
			if err != nil || len(got.Annotations) != 0 || *got.Spec.TargetCPUUtilizationPercentage != defaultUtilization {
				t.Errorf("%s %s: %v, %v", name, text, got, err)
			}
		}
	}
	_, err := create(map[string]string{metricsAnnotation: `[{"type":"Object","object":{}}]`})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `spec.metrics[0].object.target.value: Invalid value: "0": must be positive`) {
		t.Errorf("an empty metric: %v", err)
	}
}
