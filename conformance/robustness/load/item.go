package load

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// Group is that of the harness's CRDs.
const Group = "robust.espalier.dev"

// The resources of the harness.
const (
	Things = "things" // with schemas that change
	Coins  = "coins"  // two versions and a conversion webhook
	Crates = "crates" // in namespaces of their own: with a quota, or deleted as a whole
)

// finalizer is that of objects which have one.
const finalizer = Group + "/hold"

// object is what is read of a custom resource.
type object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   metadata       `json:"metadata"`
	Spec       map[string]any `json:"spec"`
}

type metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
	Finalizers        []string          `json:"finalizers"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []struct {
		UID string `json:"uid"`
	} `json:"ownerReferences"`
}

// ItemOf reads a custom resource of the harness.
func ItemOf(resource string, data []byte) (history.Item, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return history.Item{Schema: -1}, err
	}
	m := o.Metadata
	it := history.Item{
		Resource: resource, Name: m.Name, UID: m.UID, Schema: -1, APIVersion: o.APIVersion,
		Deleting: m.DeletionTimestamp != "", Finalizers: m.Finalizers, Labels: m.Labels,
	}
	if m.Namespace != "" {
		it.Name = m.Namespace + "/" + m.Name
	}
	it.Revision, _ = strconv.ParseInt(m.ResourceVersion, 10, 64) // bytes in etcd have none
	for _, owner := range m.OwnerReferences {
		it.Owners = append(it.Owners, owner.UID)
	}
	for field, value := range o.Spec {
		switch x := value.(type) {
		case []any:
			for _, id := range x {
				it.Log = append(it.Log, fmt.Sprint(id))
			}
		case map[string]any:
			for manager, id := range x {
				if it.Marks == nil {
					it.Marks = map[string]string{}
				}
				it.Marks[manager] = fmt.Sprint(id)
			}
		case string:
			if n, err := strconv.Atoi(strings.TrimPrefix(field, "p")); err == nil {
				it.Schema = max(it.Schema, n)
			}
		}
	}
	return it, nil
}

// body is an item as a client sends it.
func body(it *history.Item, owners []history.Item) []byte {
	namespace, name, _ := strings.Cut(it.Name, "/")
	meta := map[string]any{"name": name, "namespace": namespace}
	if it.Revision != 0 {
		meta["resourceVersion"] = fmt.Sprint(it.Revision)
	}
	if it.UID != "" {
		meta["uid"] = it.UID
	}
	if len(it.Finalizers) > 0 {
		meta["finalizers"] = it.Finalizers
	}
	if len(it.Labels) > 0 {
		meta["labels"] = it.Labels
	}
	if len(owners) > 0 {
		var references []any
		for _, owner := range owners {
			_, ownerName, _ := strings.Cut(owner.Name, "/")
			references = append(references, map[string]any{"apiVersion": Group + "/v1", "kind": Kind(Things), "name": ownerName, "uid": owner.UID})
		}
		meta["ownerReferences"] = references
	}
	spec := map[string]any{"log": append([]string{}, it.Log...)}
	if len(it.Marks) > 0 {
		spec["marks"] = it.Marks
	}
	return encode(map[string]any{"apiVersion": it.APIVersion, "kind": Kind(it.Resource), "metadata": meta, "spec": spec})
}

// encode is for values that always can be.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
