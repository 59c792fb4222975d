package object

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The functions here read canonical JSON that Normalize has brought into the
// form of ObjectMeta. Of anything else they make the zero value.

// decodeMeta reads the metadata that begins at an offset; none, if it is no
// object.
func decodeMeta(b []byte, at int) *metav1.ObjectMeta {
	m := &metav1.ObjectMeta{}
	if at <= 0 || b[at] != '{' {
		return m
	}
	for c := within(b, at); c.advance(); {
		switch v := c.raw(); c.name() {
		case "annotations":
			m.Annotations = stringsByName(v)
		case "creationTimestamp":
			if t := timeOf(v); t != nil {
				m.CreationTimestamp = *t
			}
		case "deletionGracePeriodSeconds":
			if n, ok := numberOf(v); ok {
				m.DeletionGracePeriodSeconds = &n
			}
		case "deletionTimestamp":
			m.DeletionTimestamp = timeOf(v)
		case "finalizers":
			m.Finalizers = stringsOf(v)
		case "generateName":
			m.GenerateName = textOf(v)
		case "generation":
			m.Generation, _ = numberOf(v)
		case "labels":
			m.Labels = stringsByName(v)
		case "managedFields":
			m.ManagedFields = managedFieldsOf(v)
		case "name":
			m.Name = textOf(v)
		case "namespace":
			m.Namespace = textOf(v)
		case "ownerReferences":
			m.OwnerReferences = ownersOf(v)
		case "resourceVersion":
			m.ResourceVersion = textOf(v)
		case "selfLink":
			m.SelfLink = textOf(v)
		case "uid":
			m.UID = types.UID(textOf(v))
		}
	}
	return m
}

// each calls f for the items of an array; it does nothing for another value.
func each(array []byte, f func(item []byte)) {
	if len(array) < 2 || array[0] != '[' {
		return
	}
	for p := 1; p < len(array)-1; p++ { // past the comma
		end := valueEnd(array, p)
		if end < 0 {
			return
		}
		f(array[p:end])
		p = end
	}
}

// count returns the number of items of an array.
func count(value []byte) int {
	n := 0
	each(value, func([]byte) { n++ })
	return n
}

func stringsByName(value []byte) map[string]string {
	if len(value) < 2 || value[0] != '{' {
		return nil
	}
	m := map[string]string{}
	for c := within(value, 0); c.advance(); {
		m[unescaped(c.name())] = textOf(c.raw())
	}
	return m
}

func stringsOf(value []byte) []string {
	if len(value) == 0 || value[0] != '[' {
		return nil
	}
	list := make([]string, 0, count(value))
	each(value, func(item []byte) { list = append(list, textOf(item)) })
	return list
}

// timeOf returns the time that is written, in the local zone as upstream's
// decoder does, or nil.
func timeOf(value []byte) *metav1.Time {
	t, err := time.Parse(time.RFC3339, textOf(value))
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t.Local()}
}

func boolOf(value []byte) *bool {
	switch string(value) {
	case "true", "false":
		b := value[0] == 't'
		return &b
	}
	return nil
}

func ownersOf(value []byte) []metav1.OwnerReference {
	if len(value) == 0 || value[0] != '[' {
		return nil
	}
	list := make([]metav1.OwnerReference, 0, count(value))
	each(value, func(item []byte) {
		var r metav1.OwnerReference
		for c := within(item, 0); c.advance(); {
			switch v := c.raw(); c.name() {
			case "apiVersion":
				r.APIVersion = textOf(v)
			case "blockOwnerDeletion":
				r.BlockOwnerDeletion = boolOf(v)
			case "controller":
				r.Controller = boolOf(v)
			case "kind":
				r.Kind = textOf(v)
			case "name":
				r.Name = textOf(v)
			case "uid":
				r.UID = types.UID(textOf(v))
			}
		}
		list = append(list, r)
	})
	return list
}

func managedFieldsOf(value []byte) []metav1.ManagedFieldsEntry {
	if len(value) == 0 || value[0] != '[' {
		return nil
	}
	list := make([]metav1.ManagedFieldsEntry, 0, count(value))
	each(value, func(item []byte) {
		var e metav1.ManagedFieldsEntry
		for c := within(item, 0); c.advance(); {
			switch v := c.raw(); c.name() {
			case "apiVersion":
				e.APIVersion = textOf(v)
			case "fieldsType":
				e.FieldsType = textOf(v)
			case "fieldsV1":
				if v[0] != 'n' {
					e.FieldsV1 = &metav1.FieldsV1{}
					e.FieldsV1.SetRawBytes(v)
				}
			case "manager":
				e.Manager = textOf(v)
			case "operation":
				e.Operation = metav1.ManagedFieldsOperationType(textOf(v))
			case "subresource":
				e.Subresource = textOf(v)
			case "time":
				e.Time = timeOf(v)
			}
		}
		list = append(list, e)
	})
	return list
}
