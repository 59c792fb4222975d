package generator

import "strings"

// metadata returns the metadata of a template or of an object.
func (m *mutation) metadata() any {
	out := map[string]any{}
	for range 1 + m.src.IntN(2) {
		m.changeIn(out)
	}
	return out
}

// changeMetadata changes the metadata of the object in a way that its schema says nothing of.
func (m *mutation) changeMetadata() bool {
	meta, ok := m.root["metadata"].(map[string]any)
	if !ok {
		return false
	}
	m.changeIn(meta)
	return true
}

func (m *mutation) changeIn(meta map[string]any) {
	switch m.src.IntN(12) {
	case 0, 1, 2:
		m.put(meta, "labels", pick(m.src, labelKeys), pick(m.src, labelValues))
	case 3, 4:
		m.put(meta, "annotations", pick(m.src, annotationKeys), pick(m.src, annotationValues))
	case 5:
		meta["ownerReferences"] = []any{m.owner()}
		if m.src.Chance(30) {
			meta["ownerReferences"] = append(meta["ownerReferences"].([]any), m.owner())
		}
	case 6:
		meta["finalizers"] = []any{pick(m.src, finalizers)}
		if m.src.Chance(20) {
			meta["finalizers"] = append(meta["finalizers"].([]any), pick(m.src, finalizers))
		}
	case 7:
		meta["generateName"] = pick(m.src, []string{"gen-", "gen", "Upper-", "a_b-", "-", strings.Repeat("g", 70), strings.Repeat("g", 260), "x."})
		if m.src.Chance(60) {
			delete(meta, "name")
		}
	case 8, 9:
		m.rename(meta)
	case 10:
		m.serverSet(meta)
	case 11:
		meta["namespace"] = pick(m.src, []string{"other", "", "Upper", "kube-system", "default"})
	}
}

var annotationValues = []any{"text", "", "ü", int64(1), true, nil, `{"a":1}`, "unconfined", "runtime/default", "localhost/x", "true", "false", strings.Repeat("x", 3000)}

func (m *mutation) put(meta map[string]any, field, key string, value any) {
	entries, ok := meta[field].(map[string]any)
	if !ok {
		entries = map[string]any{}
		meta[field] = entries
	}
	entries[key] = value
}

// rename gives the object a name with a mistake. What is valid of it contains the number of the object, so that two do not meet.
func (m *mutation) rename(meta map[string]any) {
	unique := m.src.Unique
	name, _ := meta["name"].(string)
	meta["name"] = pick(m.src, []string{
		"Upper" + unique, "under_score" + unique, "-x" + unique, "x" + unique + "-", "a.b" + unique, "a..b" + unique, "ü" + unique, "", " ", "a b", "a/b" + unique, "..", ".",
		unique, "x" + strings.Repeat("y", 62-len(unique)) + unique, "x" + strings.Repeat("y", 63-len(unique)) + unique, "x" + strings.Repeat("y", 252-len(unique)) + unique,
		"x" + strings.Repeat("y", 253-len(unique)) + unique, "x%" + unique, "system:x" + unique, strings.ToUpper(name), name + ".",
		"x" + strings.Repeat("y", 51-len(unique)) + unique, "x" + strings.Repeat("y", 52-len(unique)) + unique,
	})
}

// serverSet sets what the server sets or a client may not.
func (m *mutation) serverSet(meta map[string]any) {
	switch m.src.IntN(9) {
	case 0:
		meta["uid"] = pick(m.src, uids)
	case 1:
		meta["resourceVersion"] = pick(m.src, []any{"1", "0", "", "abc", int64(1), "999999999"})
	case 2:
		meta["creationTimestamp"] = pick(m.src, times)
	case 3:
		meta["deletionTimestamp"] = pick(m.src, times)
	case 4:
		meta["generation"] = pick(m.src, integers)
	case 5:
		meta["selfLink"] = "/x"
	case 6:
		meta["deletionGracePeriodSeconds"] = pick(m.src, integers)
	case 7:
		meta["managedFields"] = pick(m.src, []any{
			[]any{}, []any{map[string]any{}}, []any{map[string]any{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}},
			[]any{map[string]any{"manager": "x", "operation": "Steal"}}, nil,
		})
	case 8:
		meta["unknownField"] = "x"
	}
}

func (m *mutation) owner() any {
	owner := map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "0f1c4f0a-5f0e-4f6c-9f8d-0a1b2c3d4e5f"}
	switch m.src.IntN(10) {
	case 0:
		delete(owner, pick(m.src, []string{"apiVersion", "kind", "name", "uid"}))
	case 1:
		owner[pick(m.src, []string{"apiVersion", "kind", "name", "uid"})] = pick(m.src, []any{"", "a/b/c", int64(1), "v1", nil})
	case 2, 3, 4:
		owner["controller"] = true
	case 5:
		owner["blockOwnerDeletion"] = true
	case 6:
		owner["kind"], owner["apiVersion"] = "Event", "v1"
	}
	return owner
}
