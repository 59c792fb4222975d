package builtin

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// What version 1 has no field for is in these annotations, as JSON.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
)

// defaultUtilization is the target of autoscalers that name no metric, in percent.
const defaultUtilization = 80

// addAutoscalers connects the two versions of autoscalers. Objects are stored in version
// 2, by whose rules those of version 1 are validated.
func addAutoscalers(r *Resource) {
	if r.Version == autoscalingv1.SchemeGroupVersion.Version {
		r.Alias, r.convert, r.selectors = r.resource(), convertAutoscalers, map[string]string{}
		return
	}
	// A tree has no empty list of policies. Only an absent one has a default: an empty one
	// is an error.
	fill := r.Strategy.fill
	r.Strategy.fill = func(obj runtime.Object) bool {
		a := obj.(*autoscalingv2.HorizontalPodAutoscaler)
		up, down := emptyPolicies(a)
		changed := fill(obj)
		if up {
			a.Spec.Behavior.ScaleUp.Policies = []autoscalingv2.HPAScalingPolicy{}
		}
		if down {
			a.Spec.Behavior.ScaleDown.Policies = []autoscalingv2.HPAScalingPolicy{}
		}
		return changed
	}
}

// emptyPolicies reports which rules of an autoscaler have a list of policies without items.
func emptyPolicies(a *autoscalingv2.HorizontalPodAutoscaler) (up, down bool) {
	none := func(r *autoscalingv2.HPAScalingRules) bool {
		return r != nil && r.Policies != nil && len(r.Policies) == 0
	}
	b := a.Spec.Behavior
	return b != nil && none(b.ScaleUp), b != nil && none(b.ScaleDown)
}

// convertAutoscalers adds the conversions between the two versions.
func convertAutoscalers(s *runtime.Scheme) error {
	return addConversions(s, autoscalerToV1, autoscalerFromV1,
		func(in *autoscalingv2.HorizontalPodAutoscalerList, out *autoscalingv1.HorizontalPodAutoscalerList) {
			out.ListMeta, out.Items = in.ListMeta, convertAll(in.Items, autoscalerToV1)
		},
		func(in *autoscalingv1.HorizontalPodAutoscalerList, out *autoscalingv2.HorizontalPodAutoscalerList) {
			out.ListMeta, out.Items = in.ListMeta, convertAll(in.Items, autoscalerFromV1)
		})
}

func autoscalerToV1(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) {
	*out = autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	notes := withoutAutoscalerNotes(in.Annotations)
	var others []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		m := &in.Spec.Metrics[i]
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU && r.Target.AverageUtilization != nil {
			if out.Spec.TargetCPUUtilizationPercentage == nil {
				out.Spec.TargetCPUUtilizationPercentage = r.Target.AverageUtilization
			}
			continue
		}
		others = append(others, metricToV1(m))
	}
	var current []autoscalingv1.MetricStatus
	for i := range in.Status.CurrentMetrics {
		m := &in.Status.CurrentMetrics[i]
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU &&
			r.Current.AverageUtilization != nil && out.Status.CurrentCPUUtilizationPercentage == nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
		current = append(current, currentToV1(m))
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	for _, c := range in.Status.Conditions {
		conditions = append(conditions, autoscalingv1.HorizontalPodAutoscalerCondition{
			Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	note(&notes, metricsAnnotation, others, len(others) > 0)
	note(&notes, currentMetricsAnnotation, current, len(current) > 0)
	note(&notes, conditionsAnnotation, conditions, len(conditions) > 0)
	if b := in.Spec.Behavior; b != nil {
		note(&notes, behaviorAnnotation, notedBehavior{notedRulesOf(b.ScaleUp), notedRulesOf(b.ScaleDown)}, true)
	}
	out.Annotations = notes
}

func autoscalerFromV1(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) {
	*out = autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	for _, m := range noted[[]autoscalingv1.MetricSpec](in, metricsAnnotation) {
		out.Spec.Metrics = append(out.Spec.Metrics, metricFromV1(&m))
	}
	if target := in.Spec.TargetCPUUtilizationPercentage; target != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, utilizationOfCPU(*target))
	} else if len(out.Spec.Metrics) == 0 {
		out.Spec.Metrics = append(out.Spec.Metrics, utilizationOfCPU(defaultUtilization))
	}
	for _, m := range noted[[]autoscalingv1.MetricStatus](in, currentMetricsAnnotation) {
		out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, currentFromV1(&m))
	}
	if now := in.Status.CurrentCPUUtilizationPercentage; now != nil && len(out.Status.CurrentMetrics) == 0 {
		out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, autoscalingv2.MetricStatus{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: now},
			},
		})
	}
	for _, c := range noted[[]autoscalingv1.HorizontalPodAutoscalerCondition](in, conditionsAnnotation) {
		out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	if b := noted[*notedBehavior](in, behaviorAnnotation); b != nil {
		out.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: b.ScaleUp.rules(), ScaleDown: b.ScaleDown.rules(),
		}
	}
	out.Annotations = withoutAutoscalerNotes(in.Annotations)
}

func utilizationOfCPU(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}

// The behavior in an annotation has the names of fields in Go. They are read in any case.
type (
	notedBehavior struct{ ScaleUp, ScaleDown *notedRules }
	notedRules    struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []notedPolicy
		Tolerance                  *resource.Quantity
	}
	notedPolicy struct {
		Type          autoscalingv2.HPAScalingPolicyType
		Value         int32
		PeriodSeconds int32
	}
)

func notedRulesOf(r *autoscalingv2.HPAScalingRules) *notedRules {
	if r == nil {
		return nil
	}
	out := &notedRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, notedPolicy(p))
	}
	return out
}

func (r *notedRules) rules() *autoscalingv2.HPAScalingRules {
	if r == nil {
		return nil
	}
	out := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy(p))
	}
	return out
}

// note adds an annotation.
func note(notes *map[string]string, name string, value any, there bool) {
	if !there {
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		return // no field of these types can fail
	}
	if *notes == nil {
		*notes = map[string]string{}
	}
	(*notes)[name] = string(text)
}

// noted reads an annotation. One that cannot be read counts as absent, as in Kubernetes, and
// so does one with a quantity that takes too long.
func noted[T any](in *autoscalingv1.HorizontalPodAutoscaler, name string) T {
	var none T
	text, ok := in.Annotations[name]
	if !ok || kinds.LongQuantity([]byte(text), func(short []byte) error { return json.Unmarshal(short, new(T)) }) != nil {
		return none
	}
	var value T
	if json.Unmarshal([]byte(text), &value) != nil {
		return none
	}
	return value
}

// withoutAutoscalerNotes returns a copy without the annotations that stand for fields.
func withoutAutoscalerNotes(notes map[string]string) map[string]string {
	out := maps.Clone(notes)
	for _, name := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation} {
		delete(out, name)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
