package request

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
)

// Scale has the paths of what the scale subresource shows, as the CRD has them, with a dot in
// front. The path of the selector may be empty.
type Scale struct {
	SpecReplicas, StatusReplicas, Selector string
}

// NewScale returns the paths of a scale subresource; nil if there is none.
func NewScale(s *crd.Scale) *Scale {
	if s == nil {
		return nil
	}
	p := &Scale{SpecReplicas: s.SpecReplicasPath, StatusReplicas: s.StatusReplicasPath}
	if s.LabelSelectorPath != nil {
		p.Selector = *s.LabelSelectorPath
	}
	return p
}

// Steps returns the names in the path of a scale: API servers take them for member names that
// dots separate.
func Steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// problems says what is wrong with the values that the scale shows. A status cannot be blamed
// for the replicas that are asked for.
func (s *Scale) problems(o *object.Object, target Target) []Problem {
	if s == nil {
		return nil
	}
	var out []Problem
	if target == Object {
		out = appendReplicas(out, o, s.SpecReplicas)
	}
	out = appendReplicas(out, o, s.StatusReplicas)
	if selector, err := s.LabelSelector(o); err != nil {
		out = append(out, Problem{Error: field.Invalid(field.NewPath(s.Selector), selector, err.Error())})
	}
	return out
}

func appendReplicas(out []Problem, o *object.Object, path string) []Problem {
	n, _, err := numberAt(o, path)
	detail := ""
	switch {
	case err != nil:
		detail = err.Error()
	case n < 0:
		detail = "should be a non-negative integer"
	case n > math.MaxInt32:
		detail = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return out
	}
	return append(out, Problem{Error: field.Invalid(field.NewPath(path), n, detail)})
}

// Desired returns the replicas in the spec, and whether there are any.
func (s *Scale) Desired(o *object.Object) (int64, bool, error) { return numberAt(o, s.SpecReplicas) }

// Actual returns the replicas in the status.
func (s *Scale) Actual(o *object.Object) (int64, error) {
	n, _, err := numberAt(o, s.StatusReplicas)
	return n, err
}

// LabelSelector returns the selector in the status; it is empty if there is none.
func (s *Scale) LabelSelector(o *object.Object) (string, error) {
	if s.Selector == "" {
		return "", nil
	}
	steps := Steps(s.Selector)
	content, err := memberOf(o, steps[0])
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(content, steps...)
	return text, err
}

// numberAt reads a whole number at a path, and whether there is one.
func numberAt(o *object.Object, path string) (int64, bool, error) {
	steps := Steps(path)
	if n, err := strconv.ParseInt(string(o.Lookup(steps...)), 10, 64); err == nil {
		return n, true, nil
	}
	content, err := memberOf(o, steps[0])
	if err != nil {
		return 0, false, err
	}
	return unstructured.NestedInt64(content, steps...)
}

// memberOf decodes one member of an object and leaves out the others.
func memberOf(o *object.Object, name string) (map[string]any, error) {
	raw := o.Member(name)
	if raw == nil {
		return map[string]any{}, nil
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, err
	}
	return map[string]any{name: value}, nil
}

// SetDesired writes the replicas of the spec. Only the objects on the path are decoded.
func (s *Scale) SetDesired(o *object.Object, n int64) error {
	steps := Steps(s.SpecReplicas)
	value, err := withNumber(o.Member(steps[0]), steps, 1, n)
	if err != nil {
		return err
	}
	o.SetMember(steps[0], value)
	return nil
}

// withNumber returns the JSON of the object at steps[:depth] with the number in it; raw is the
// object without it, nil if there is none.
func withNumber(raw []byte, steps []string, depth int, n int64) ([]byte, error) {
	if depth == len(steps) {
		return strconv.AppendInt(nil, n, 10), nil
	}
	members := map[string]json.RawMessage{}
	if raw != nil {
		if raw[0] != '{' {
			return nil, fmt.Errorf("value cannot be set because .%s is not a map[string]interface{}", strings.Join(steps[:depth], "."))
		}
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
	}
	value, err := withNumber(members[steps[depth]], steps, depth+1, n)
	if err != nil {
		return nil, err
	}
	members[steps[depth]] = value
	return json.Marshal(members) // sorted and compact, as canonical JSON is
}
