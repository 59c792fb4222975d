package trial

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// declared is what the rules of a CRD say that matters for what must be kept.
type declared struct {
	conversions         []between
	annotations, labels []string
	lost                map[string][][]string // paths by version
	calculated          map[string][]string   // by version: paths that rules other than moves convert
	keys                map[string]string     // of lists that rules make maps: path to key
}

type between struct {
	Between []string            `json:"between"`
	Rules   []map[string]any    `json:"rules"`
	Lost    map[string][]string `json:"lost"`
}

// readDeclared reads the annotation, which has been compiled before.
func readDeclared(text string) (*declared, error) {
	var doc struct {
		Conversions []between `json:"conversions"`
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	d := &declared{conversions: doc.Conversions, lost: map[string][][]string{}, calculated: map[string][]string{}, keys: map[string]string{}}
	for _, c := range doc.Conversions {
		for version, paths := range c.Lost {
			for _, path := range paths {
				d.lost[version] = append(d.lost[version], steps(path))
			}
		}
		for _, rule := range c.Rules {
			for kind, v := range rule {
				if m, ok := v.(map[string]any); ok {
					d.rule(c.Between, kind, m)
				}
			}
		}
	}
	return d, nil
}

func (d *declared) rule(between []string, kind string, rule map[string]any) {
	side := map[string]int{"from": 0, "to": 1, "list": 0, "map": 1}
	if kind == "mapToList" {
		side["list"], side["map"] = 1, 0
	}
	for member, v := range rule {
		n, isPath := side[member]
		if !isPath && !(kind == "constant" && member == "path") {
			continue
		}
		version := between[n]
		if in, ok := rule["in"].(string); ok {
			version = in
		}
		for _, path := range textsOf(v) {
			path = strings.NewReplacer("['", ".", "']", "").Replace(path)
			for in, list := range map[string]*[]string{"annotations": &d.annotations, "labels": &d.labels} {
				if name, ok := strings.CutPrefix(path, "metadata."+in+"["); ok {
					*list = append(*list, strings.Trim(strings.TrimSuffix(name, "]"), `'"`))
				}
			}
			if kind == "listToMap" || kind == "mapToList" {
				if member == "list" {
					d.keys[path], _ = rule["key"].(string)
				}
			} else if kind != "move" {
				d.calculated[version] = append(d.calculated[version], path)
			}
			if kind == "enum" && rule["to"] == nil {
				d.calculated[between[1]] = append(d.calculated[between[1]], path)
			}
		}
	}
}

func textsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// steps divides a path into names, [] and [*].
func steps(path string) []string {
	path = strings.NewReplacer("['", ".", "']", "", "[]", ".[]", "[*]", ".[*]").Replace(path)
	return strings.Split(path, ".")
}

// keepsBetween reports whether nothing can be lost between two versions but fields of their own.
func (d *declared) keepsBetween(a, b string) bool {
	if len(d.lost) == 0 {
		return true
	}
	return slices.ContainsFunc(d.conversions, func(c between) bool { return slices.Contains(c.Between, a) && slices.Contains(c.Between, b) })
}

// without returns an object without the fields of the version that are declared lost.
func (d *declared) without(version string, o any) any {
	for _, path := range d.lost[version] {
		o = removed(o, path)
	}
	return o
}

func removed(v any, path []string) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, child := range x {
			switch {
			case name != path[0] && path[0] != "[*]":
				out[name] = child
			case len(path) > 1:
				out[name] = removed(child, path[1:])
			}
		}
		return out
	case []any:
		if path[0] != "[]" {
			return v
		}
		out := []any{}
		for _, item := range x {
			if len(path) > 1 {
				out = append(out, removed(item, path[1:]))
			}
		}
		return out
	}
	return v
}
