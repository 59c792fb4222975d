package builtin

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func metricToV1(m *autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	out := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(m.Type)}
	if o := m.Object; o != nil {
		out.Object = &autoscalingv1.ObjectMetricSource{
			Target: autoscalingv1.CrossVersionObjectReference(o.DescribedObject), MetricName: o.Metric.Name, Selector: o.Metric.Selector,
			TargetValue: valueOf(o.Target.Value), AverageValue: o.Target.AverageValue,
		}
	}
	if o := m.Pods; o != nil {
		out.Pods = &autoscalingv1.PodsMetricSource{MetricName: o.Metric.Name, Selector: o.Metric.Selector, TargetAverageValue: valueOf(o.Target.AverageValue)}
	}
	if o := m.Resource; o != nil {
		out.Resource = &autoscalingv1.ResourceMetricSource{
			Name: o.Name, TargetAverageUtilization: o.Target.AverageUtilization, TargetAverageValue: o.Target.AverageValue,
		}
	}
	if o := m.ContainerResource; o != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: o.Name, Container: o.Container, TargetAverageUtilization: o.Target.AverageUtilization, TargetAverageValue: o.Target.AverageValue,
		}
	}
	if o := m.External; o != nil {
		out.External = &autoscalingv1.ExternalMetricSource{
			MetricName: o.Metric.Name, MetricSelector: o.Metric.Selector, TargetValue: o.Target.Value, TargetAverageValue: o.Target.AverageValue,
		}
	}
	return out
}

func metricFromV1(m *autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	out := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
	if o := m.Object; o != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &o.TargetValue, AverageValue: o.AverageValue}
		if o.AverageValue != nil {
			target.Type = autoscalingv2.AverageValueMetricType
		}
		out.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(o.Target), Metric: metricOf(o.MetricName, o.Selector), Target: target,
		}
	}
	if o := m.Pods; o != nil {
		out.Pods = &autoscalingv2.PodsMetricSource{
			Metric: metricOf(o.MetricName, o.Selector),
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &o.TargetAverageValue},
		}
	}
	if o := m.Resource; o != nil {
		out.Resource = &autoscalingv2.ResourceMetricSource{Name: o.Name, Target: resourceTarget(o.TargetAverageUtilization, o.TargetAverageValue)}
	}
	if o := m.ContainerResource; o != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: o.Name, Container: o.Container, Target: resourceTarget(o.TargetAverageUtilization, o.TargetAverageValue),
		}
	}
	if o := m.External; o != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: o.TargetValue, AverageValue: o.TargetAverageValue}
		if o.TargetValue == nil {
			target.Type = autoscalingv2.AverageValueMetricType
		}
		out.External = &autoscalingv2.ExternalMetricSource{Metric: metricOf(o.MetricName, o.MetricSelector), Target: target}
	}
	return out
}

func currentToV1(m *autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	out := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(m.Type)}
	if o := m.Object; o != nil {
		out.Object = &autoscalingv1.ObjectMetricStatus{
			Target: autoscalingv1.CrossVersionObjectReference(o.DescribedObject), MetricName: o.Metric.Name, Selector: o.Metric.Selector,
			CurrentValue: valueOf(o.Current.Value), AverageValue: o.Current.AverageValue,
		}
	}
	if o := m.Pods; o != nil {
		out.Pods = &autoscalingv1.PodsMetricStatus{MetricName: o.Metric.Name, Selector: o.Metric.Selector, CurrentAverageValue: valueOf(o.Current.AverageValue)}
	}
	if o := m.Resource; o != nil {
		out.Resource = &autoscalingv1.ResourceMetricStatus{
			Name: o.Name, CurrentAverageUtilization: o.Current.AverageUtilization, CurrentAverageValue: valueOf(o.Current.AverageValue),
		}
	}
	if o := m.ContainerResource; o != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
			Name: o.Name, Container: o.Container, CurrentAverageUtilization: o.Current.AverageUtilization, CurrentAverageValue: valueOf(o.Current.AverageValue),
		}
	}
	if o := m.External; o != nil {
		out.External = &autoscalingv1.ExternalMetricStatus{
			MetricName: o.Metric.Name, MetricSelector: o.Metric.Selector, CurrentValue: valueOf(o.Current.Value), CurrentAverageValue: o.Current.AverageValue,
		}
	}
	return out
}

func currentFromV1(m *autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	out := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(m.Type)}
	if o := m.Object; o != nil {
		out.Object = &autoscalingv2.ObjectMetricStatus{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(o.Target), Metric: metricOf(o.MetricName, o.Selector),
			Current: autoscalingv2.MetricValueStatus{Value: &o.CurrentValue, AverageValue: o.AverageValue},
		}
	}
	if o := m.Pods; o != nil {
		out.Pods = &autoscalingv2.PodsMetricStatus{
			Metric: metricOf(o.MetricName, o.Selector), Current: autoscalingv2.MetricValueStatus{AverageValue: &o.CurrentAverageValue},
		}
	}
	if o := m.Resource; o != nil {
		out.Resource = &autoscalingv2.ResourceMetricStatus{
			Name: o.Name, Current: autoscalingv2.MetricValueStatus{AverageUtilization: o.CurrentAverageUtilization, AverageValue: &o.CurrentAverageValue},
		}
	}
	if o := m.ContainerResource; o != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: o.Name, Container: o.Container,
			Current: autoscalingv2.MetricValueStatus{AverageUtilization: o.CurrentAverageUtilization, AverageValue: &o.CurrentAverageValue},
		}
	}
	if o := m.External; o != nil {
		out.External = &autoscalingv2.ExternalMetricStatus{
			Metric:  metricOf(o.MetricName, o.MetricSelector),
			Current: autoscalingv2.MetricValueStatus{Value: &o.CurrentValue, AverageValue: o.CurrentAverageValue},
		}
	}
	return out
}

func metricOf(name string, selector *metav1.LabelSelector) autoscalingv2.MetricIdentifier {
	return autoscalingv2.MetricIdentifier{Name: name, Selector: selector}
}

func resourceTarget(utilization *int32, average *resource.Quantity) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageUtilization: utilization, AverageValue: average}
	if utilization != nil {
		target.Type = autoscalingv2.UtilizationMetricType
	}
	return target
}

// valueOf is a quantity, zero if there is none.
func valueOf(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}
