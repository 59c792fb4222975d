package customresourcedefinition

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/object"
)

// Status returns the status of a CRD.
func Status(o *object.Object) (*v1.CustomResourceDefinitionStatus, error) {
	status := &v1.CustomResourceDefinitionStatus{}
	raw := o.Member("status")
	if raw == nil {
		return status, nil
	}
	return status, json.Unmarshal(raw, status)
}

// SetStatus sets the status of a CRD.
func SetStatus(o *object.Object, status *v1.CustomResourceDefinitionStatus) {
	data, err := json.Marshal(status)
	if err == nil {
		data, err = canonical(data)
	}
	if err != nil {
		panic(err) // the type has nothing in it that cannot be written
	}
	o.SetMember("status", data)
}

// SetCondition adds a condition, or changes the one of its type. The time of
// transition is when its status last changed.
func SetCondition(status *v1.CustomResourceDefinitionStatus, c v1.CustomResourceDefinitionCondition) {
	i := slices.IndexFunc(status.Conditions, func(x v1.CustomResourceDefinitionCondition) bool { return x.Type == c.Type })
	if i < 0 {
		c.LastTransitionTime = metav1.Now()
		status.Conditions = append(status.Conditions, c)
		return
	}
	if old := &status.Conditions[i]; old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	} else {
		c.LastTransitionTime = metav1.Now()
	}
	status.Conditions[i] = c
}
