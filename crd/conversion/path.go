package conversion

import (
	"errors"
	"fmt"
	"strings"
)

// step is a part of a path: a name, or all items of a list, or all values of a map.
type step struct {
	name string
	kind stepKind
}

type stepKind uint8

const (
	byName  stepKind = iota
	items            // []
	entries          // [*]
	bracket          // [name], the key of an annotation or label
)

// parsePath reads a path such as spec.ports[].name, spec.limits[*].unit or
// metadata.annotations[example.com/size].
func parsePath(path string) ([]step, error) {
	if path == "" {
		return nil, errors.New("the path is empty")
	}
	var steps []step
	for rest := path; rest != ""; {
		if len(steps) == maxPathParts {
			return nil, fmt.Errorf("path %q has more than %d parts", path, maxPathParts)
		}
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("path %q: [ has no ]", path)
			}
			switch inside := rest[1:end]; inside {
			case "":
				steps = append(steps, step{kind: items})
			case "*":
				steps = append(steps, step{kind: entries})
			default:
				steps = append(steps, step{kind: bracket, name: strings.Trim(inside, `'"`)})
			}
			rest = rest[end+1:]
			continue
		}
		rest = strings.TrimPrefix(rest, ".")
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("path %q has an empty part", path)
		}
		steps = append(steps, step{name: rest[:end]})
		rest = rest[end:]
	}
	return steps, nil
}

// resolve finds the field that a path leads to. Annotations and labels become fields when a rule names them.
func (s *side) resolve(path string) (*field, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if steps[0].kind == byName && steps[0].name == "metadata" {
		return s.resolveMetadata(path, steps)
	}
	f := s.root
	for i, st := range steps {
		var next *field
		switch st.kind {
		case byName, bracket:
			if f.kind == object {
				next = f.child(st.name)
			}
		case items:
			if f.kind == list {
				next = f.item
			}
		case entries:
			if f.kind == mapping {
				next = f.item
			}
		}
		if next == nil {
			return nil, s.notFound(path, f, i, st)
		}
		f = next
	}
	if f == s.root || f.parent == s.root && (f.name == "apiVersion" || f.name == "kind") {
		return nil, fmt.Errorf("path %q: conversion sets apiVersion and keeps kind", path)
	}
	return f, nil
}

func (s *side) notFound(path string, f *field, i int, st step) error {
	where := f.path()
	if where == "" {
		where = "the schema"
	}
	switch {
	case st.kind == items:
		return fmt.Errorf("path %q: %s of %s is not a list", path, where, s.version)
	case st.kind == entries:
		return fmt.Errorf("path %q: %s of %s is not a map", path, where, s.version)
	case f.kind == list:
		return fmt.Errorf("path %q: %s of %s is a list: write %s[]", path, where, s.version, where)
	case f.kind == mapping:
		return fmt.Errorf("path %q: %s of %s is a map: write %s[*]", path, where, s.version, where)
	}
	return fmt.Errorf("path %q: %s of %s has no field %q", path, where, s.version, st.name)
}

func (s *side) resolveMetadata(path string, steps []step) (*field, error) {
	if len(steps) != 3 || steps[1].kind != byName || steps[1].name != "annotations" && steps[1].name != "labels" ||
		steps[2].kind != byName && steps[2].kind != bracket {
		return nil, fmt.Errorf("path %q: of metadata only annotations and labels can be converted: write metadata.annotations[key] or metadata.labels[key]", path)
	}
	if name := steps[2].name; name == Preserved || name == Annotation {
		return nil, fmt.Errorf("path %q: conversion itself uses this annotation", path)
	}
	return s.note(steps[1].name, steps[2].name), nil
}

// path returns where the field is, as rules write it.
func (f *field) path() string {
	if f.parent == nil {
		return ""
	}
	if f.in != "" {
		return "metadata." + f.in + "[" + f.name + "]"
	}
	up := f.parent.path()
	switch {
	case f.parent.kind == list:
		return up + "[]"
	case f.parent.kind == mapping:
		return up + "[*]"
	case strings.ContainsAny(f.name, ".[]"):
		return up + "['" + f.name + "']"
	case up == "":
		return f.name
	}
	return up + "." + f.name
}
