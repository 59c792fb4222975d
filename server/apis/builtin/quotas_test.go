package builtin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQuotasAreRounded(t *testing.T) {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"cpu": resource.MustParse("1n"), "memory": resource.MustParse("1Gi")}}}
	quotas := resourceQuotas()
	quotas.Strategy.Default(q)
	cpu, memory := q.Spec.Hard["cpu"], q.Spec.Hard["memory"]
	if cpu.String() != "1m" || memory.String() != "1Gi" {
		t.Errorf("1n of cpu and 1Gi of memory are %s and %s", cpu.String(), memory.String())
	}
}
