package answer

import (
	"maps"
	"slices"
	"strings"
)

const refPrefix = "#/components/schemas/"

// Resources compares two entries of discovery.
func Resources(name string, there, here any) []Miss {
	var out []Miss
	for _, d := range Differences(there, here) {
		out = append(out, Miss{Discovery, name + d.Path + " " + d.What, d.Detail})
	}
	return out
}

// Components returns the schemas of an OpenAPI v3 document.
func Components(document any) map[string]any {
	object, _ := document.(map[string]any)
	components, _ := object["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	return schemas
}

// Schemas compares the components that a kind consists of, in two OpenAPI v3 documents. root is the name of the kind's component.
func Schemas(root string, there, here map[string]any) []Miss {
	var out []Miss
	for _, name := range reachable(root, there) {
		short := name[strings.LastIndexByte(name, '.')+1:]
		if _, ok := here[name]; !ok {
			out = append(out, Miss{OpenAPI, short + " missing here", ""})
			continue
		}
		var found []Difference
		differAll(there[name], here[name], "", &found)
		for _, d := range found {
			out = append(out, Miss{OpenAPI, short + d.Path + " " + d.What, d.Detail})
		}
	}
	return out
}

// differAll is differ for the parts of a component, each with a bound of its own, so that one property does not hide others.
func differAll(there, here any, path string, found *[]Difference) {
	t, isObject := there.(map[string]any)
	h, isObjectHere := here.(map[string]any)
	tp, has := t["properties"].(map[string]any)
	hp, hasHere := h["properties"].(map[string]any)
	if !isObject || !isObjectHere || !has || !hasHere {
		*found = append(*found, Differences(there, here)...)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(tp)) {
		if _, ok := hp[key]; !ok {
			*found = append(*found, Difference{Path: path + "." + key, What: "missing here"})
			continue
		}
		for _, d := range Differences(tp[key], hp[key]) {
			d.Path = path + "." + key + d.Path
			*found = append(*found, d)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(hp)) {
		if _, ok := tp[key]; !ok {
			*found = append(*found, Difference{Path: path + "." + key, What: "only here"})
		}
	}
	for _, d := range Differences(without(t), without(h)) {
		d.Path = path + d.Path
		*found = append(*found, d)
	}
}

// without returns a component without its properties and its kinds: DeleteOptions and others list the kinds of all groups.
func without(component map[string]any) map[string]any {
	out := maps.Clone(component)
	delete(out, "properties")
	delete(out, "x-kubernetes-group-version-kind")
	return out
}

// reachable returns the names of the components that root refers to, itself included, sorted.
func reachable(root string, components map[string]any) []string {
	seen := map[string]bool{root: true}
	todo := []string{root}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		references(components[name], func(ref string) {
			if !seen[ref] {
				seen[ref] = true
				todo = append(todo, ref)
			}
		})
	}
	return slices.Sorted(maps.Keys(seen))
}

func references(value any, visit func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, e := range v {
			if ref, ok := e.(string); ok && key == "$ref" {
				visit(strings.TrimPrefix(ref, refPrefix))
				continue
			}
			references(e, visit)
		}
	case []any:
		for _, e := range v {
			references(e, visit)
		}
	}
}
