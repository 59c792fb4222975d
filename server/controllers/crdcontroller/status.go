package crdcontroller

import (
	"encoding/json"
	"slices"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
)

// StatusOf reads the status of a CRD.
func StatusOf(o *object.Object) (*v1.CustomResourceDefinitionStatus, error) {
	status := &v1.CustomResourceDefinitionStatus{}
	raw := o.Member("status")
	if raw == nil {
		return status, nil
	}
	return status, json.Unmarshal(raw, status)
}

// SetStatus writes the status of a CRD.
func SetStatus(o *object.Object, status *v1.CustomResourceDefinitionStatus) {
	data, err := json.Marshal(status)
	if err != nil {
		panic(err) // the type has nothing in it that cannot be written
	}
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		panic(err)
	}
	defer doc.Release()
	o.SetMember("status", doc.AppendCanonical(nil, jsondoc.Root))
}

// find returns the condition of a type, or nil.
func find(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) *v1.CustomResourceDefinitionCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == t {
			return &status.Conditions[i]
		}
	}
	return nil
}

// SetCondition puts a condition in its place, or at the end. The time is of the last
// change of the condition's status, to the second, as it is stored.
func SetCondition(status *v1.CustomResourceDefinitionStatus, c v1.CustomResourceDefinitionCondition, generation int64, now time.Time) {
	c.ObservedGeneration = generation
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	old := find(status, c.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	*old = c
}

func unset(status *v1.CustomResourceDefinitionStatus, t v1.CustomResourceDefinitionConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool { return c.Type == t })
}

func namesV1(n *catalog.Names) v1.CustomResourceDefinitionNames {
	return v1.CustomResourceDefinitionNames{
		Plural: n.Plural, Singular: n.Singular, ShortNames: n.ShortNames,
		Kind: n.Kind, ListKind: n.ListKind, Categories: n.Categories,
	}
}
