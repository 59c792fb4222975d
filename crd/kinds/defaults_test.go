package kinds

import (
	"encoding/json"
	"testing"
)

// An object with all defaults is not changed, though some of them are computed whether
// there is a value or not: callers take the answer for a reason to convert and write it.
func TestDefaultsOfCompleteObjects(t *testing.T) {
	for resource, text := range map[[3]string]string{
		{"", "v1", "pods"}: `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"a","containers":[{"name":"c","image":"i",
			"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m"}}}]},"status":{"podIP":"10.0.0.1"}}`,
		{"", "v1", "nodes"}:                               `{"metadata":{"name":"n"},"spec":{"podCIDR":"10.0.0.0/24"},"status":{"capacity":{"cpu":"1.0005"}}}`,
		{"apps", "v1", "daemonsets"}:                      `{"metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		{"apps", "v1", "deployments"}:                     `{"metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
		{"autoscaling", "v2", "horizontalpodautoscalers"}: `{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"behavior":{"scaleUp":{"selectPolicy":"Min"}}}}`,
	} {
		k := Find(resource[0], resource[1], resource[2])
		tree := map[string]any{}
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		tree = shape(&fieldType{form: objectForm, object: k.object()}, tree).(map[string]any)
		if changed, err := k.Default(tree); err != nil || !changed {
			t.Errorf("%v: no defaults were set (%v)", resource, err)
		}
		if changed, err := k.Default(tree); err != nil || changed {
			t.Errorf("%v: a complete object was changed (%v): %v", resource, err, tree)
		}
	}
}
