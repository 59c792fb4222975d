package custom

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/object"
)

// validate checks what the scale subresource would show.
func (p *scalePaths) validate(o *object.Object) field.ErrorList {
	errs := append(validateReplicas(o, p.spec), validateReplicas(o, p.status)...)
	if p.selector != "" {
		if selector, err := textAt(o, p.selector); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(p.selector), selector, err.Error()))
		}
	}
	return errs
}

// specField is how errors name the path of the desired replicas.
func (p *scalePaths) specField() string { return field.NewPath(p.spec).String() }

func validateReplicas(o *object.Object, path string) field.ErrorList {
	n, _, err := numberAt(o, path)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(field.NewPath(path), n, err.Error())}
	case n < 0:
		return field.ErrorList{field.Invalid(field.NewPath(path), n, "should be a non-negative integer")}
	case n > math.MaxInt32:
		return field.ErrorList{field.Invalid(field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}

// numberAt reads a whole number at a path, and whether there is one.
func numberAt(o *object.Object, path string) (int64, bool, error) {
	way := splitPath(path)
	if n, err := strconv.ParseInt(string(o.Lookup(way...)), 10, 64); err == nil {
		return n, true, nil
	}
	content, err := memberOf(o, way[0])
	if err != nil {
		return 0, false, err
	}
	return unstructured.NestedInt64(content, way...)
}

// textAt reads a string at a path; it is empty if there is none.
func textAt(o *object.Object, path string) (string, error) {
	way := splitPath(path)
	content, err := memberOf(o, way[0])
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(content, way...)
	return text, err
}

// memberOf decodes one member of an object and leaves the others away.
func memberOf(o *object.Object, name string) (map[string]any, error) {
	raw := o.Member(name)
	if raw == nil {
		return map[string]any{}, nil
	}
	value, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return map[string]any{name: value}, nil
}

// setNumberAt writes a whole number at a path. Only the objects on the way are
// taken apart.
func setNumberAt(o *object.Object, path string, n int64) error {
	way := splitPath(path)
	value, err := withNumber(o.Member(way[0]), way, 1, n)
	if err != nil {
		return err
	}
	o.SetMember(way[0], value)
	return nil
}

// withNumber returns the JSON of the object at way[:depth] with the number in
// it; raw is what the object is so far, nil if there is none.
func withNumber(raw []byte, way []string, depth int, n int64) ([]byte, error) {
	if depth == len(way) {
		return strconv.AppendInt(nil, n, 10), nil
	}
	members := map[string]json.RawMessage{}
	if raw != nil {
		if raw[0] != '{' {
			return nil, fmt.Errorf("value cannot be set because .%s is not a map[string]interface{}", strings.Join(way[:depth], "."))
		}
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
	}
	value, err := withNumber(members[way[depth]], way, depth+1, n)
	if err != nil {
		return nil, err
	}
	members[way[depth]] = value
	return json.Marshal(members) // sorted and compact, as canonical JSON is
}
