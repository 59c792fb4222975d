package kinds

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"go.yaml.in/yaml/v3"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rule is a rule or a warning of a type or field.
type rule struct {
	Rule              *expr     `yaml:"rule"`
	Messages          *expr     `yaml:"messages"`
	If                *expr     `yaml:"if"`
	When              string    `yaml:"when"`
	Subresource       string    `yaml:"subresource"`
	Each              *expr     `yaml:"each"`
	Inner             *expr     `yaml:"inner"`
	At                string    `yaml:"at"`
	Flat              bool      `yaml:"flat"`
	Let               lets      `yaml:"let"`
	Path              string    `yaml:"path"`
	PathExpression    *expr     `yaml:"pathExpression"`
	Reason            string    `yaml:"reason"`
	Message           string    `yaml:"message"`
	MessageExpression *expr     `yaml:"messageExpression"`
	Value             *expr     `yaml:"value"`
	Supported         supported `yaml:"supported"`
	Limit             int       `yaml:"limit"`
	Stop              bool      `yaml:"stop"`
}

// lets are the variables of a rule.
type lets []named[expr]

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *lets) UnmarshalYAML(node *yaml.Node) error {
	return (*ordered[expr])(l).UnmarshalYAML(node)
}

// supported are the values that a field may have: a list, or an expression.
type supported struct {
	values     []string
	expression *expr
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *supported) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode(&s.values)
	}
	s.expression = &expr{source: node.Value}
	return nil
}

// applies reports whether a rule is for this write.
func (r *rule) applies(w *walk) bool {
	if r.When == "create" && w.update || r.When == "update" && !w.update {
		return false
	}
	switch r.Subresource {
	case "":
		return w.subresource != "status" || w.inStatus
	case "*":
		return true
	case "main":
		return w.subresource == ""
	}
	return r.Subresource == w.subresource
}

// run calls found for every value that violates the rule, or that is to be warned of.
// The scope is that of the value at path.
func (r *rule) run(w *walk, s *scope, path *field.Path, found func(s *scope, path *field.Path) error) error {
	if !r.applies(w) {
		return nil
	}
	own := *s
	own.path = path
	for _, let := range r.Let {
		before := own // without the item
		own.lets = append(before.lets[:len(before.lets):len(before.lets)], &variable{name: let.name, expr: let.value, in: &before})
	}
	if r.Each == nil {
		return r.visit(&own, path, found)
	}
	at, indexed := appendEach(path, r.Each.source, "self")
	if r.At != "" {
		at, indexed = appendPath(path, r.At), true
	}
	if !indexed || r.Flat {
		at, indexed = path, false
	}
	return iterate(r.Each, &own, at, indexed, func(item *field.Path) error {
		if r.Inner == nil {
			return r.visit(&own, item, found)
		}
		inner := own
		inner.outer = own.item
		at, indexed := appendEach(item, r.Inner.source, "item")
		return iterate(r.Inner, &inner, at, indexed, func(item *field.Path) error { return r.visit(&inner, item, found) })
	})
}

// visit calls found for a value that the rule is for.
func (r *rule) visit(s *scope, path *field.Path, found func(s *scope, path *field.Path) error) error {
	ok, err := r.If.truth(s)
	if err != nil || !ok {
		return err
	}
	return found(s, path)
}

// iterate calls visit for the items of the list that an expression gives, with the
// item and its index in the scope. The path of an item has the index if indexed.
func iterate(e *expr, s *scope, at *field.Path, indexed bool, visit func(item *field.Path) error) error {
	value, err := e.eval(s)
	if err != nil {
		return err
	}
	list, ok := value.(traits.Lister)
	if !ok {
		return fmt.Errorf("%s: the result is a %s and not a list", e.source, value.Type().TypeName())
	}
	s.index = 0
	for it := list.Iterator(); it.HasNext() == types.True; s.index++ {
		s.item = it.Next()
		if err, ok := s.item.(*types.Err); ok {
			return err
		}
		item := at
		if indexed {
			item = at.Index(s.index)
		}
		s.path = item
		if err := visit(item); err != nil {
			return err
		}
	}
	return nil
}

// appendEach adds to a path what an expression of each reads of a variable, if it is
// nothing else. Then the items have an index in the path, too.
func appendEach(path *field.Path, source, variable string) (at *field.Path, indexed bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(source), variable)
	if !ok || rest != "" && rest[0] != '.' || strings.ContainsAny(rest, "()[] ?:!&|=<>+,'\"") {
		return path, false
	}
	return appendPath(path, rest), true
}

// violations returns the errors of a rule for a value.
func (r *rule) violations(w *walk, s *scope, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	err := r.run(w, s, path, func(s *scope, at *field.Path) error {
		if r.Messages == nil {
			ok, err := r.Rule.truth(s)
			if err != nil || ok {
				return err
			}
			e, err := r.violation(s, at, r.Message)
			if err == nil {
				errs = append(errs, e)
			}
			return err
		}
		list, err := r.Messages.eval(s)
		if err != nil {
			return err
		}
		texts, _ := plain(list).([]any)
		for _, text := range texts {
			e, err := r.violation(s, at, fmt.Sprint(text))
			if err != nil {
				return err
			}
			errs = append(errs, e)
		}
		return nil
	})
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("evaluating a rule failed: %w", err)))
	}
	return errs
}

// violation makes an error of a rule that is violated.
func (r *rule) violation(s *scope, path *field.Path, message string) (*field.Error, error) {
	var err error
	if r.MessageExpression != nil {
		if message, err = r.MessageExpression.text(s); err != nil {
			return nil, err
		}
	}
	relative := r.Path
	if r.PathExpression != nil {
		if relative, err = r.PathExpression.text(s); err != nil {
			return nil, err
		}
	}
	value, err := r.badValue(s, relative)
	if err != nil {
		return nil, err
	}
	path = appendPath(path, relative)
	switch r.Reason {
	case "required":
		return field.Required(path, message), nil
	case "forbidden":
		return field.Forbidden(path, message), nil
	case "duplicate":
		return field.Duplicate(path, value), nil
	case "notFound":
		return field.NotFound(path, value), nil
	case "tooLong":
		return field.TooLong(path, value, r.Limit), nil
	case "tooMany":
		return field.TooMany(path, length(value), r.Limit), nil
	case "typeInvalid":
		return field.TypeInvalid(path, value, message), nil
	case "internal":
		return field.InternalError(path, fmt.Errorf("%s", message)), nil
	case "notSupported":
		values := r.Supported.values
		if r.Supported.expression != nil {
			list, err := r.Supported.expression.eval(s)
			if err != nil {
				return nil, err
			}
			texts, _ := plain(list).([]any)
			for _, text := range texts {
				values = append(values, fmt.Sprint(text))
			}
		}
		return field.NotSupported(path, value, values), nil
	}
	return field.Invalid(path, value, message), nil
}

// badValue is the value that an error shows.
func (r *rule) badValue(s *scope, relative string) (any, error) {
	if r.Value != nil {
		v, err := r.Value.eval(s)
		if err != nil {
			return nil, err
		}
		return plain(v), nil
	}
	at := s.self
	if r.Each != nil {
		at = s.item
	}
	return plain(follow(at, relative)), nil
}

// follow reads the value at a path. A missing value is null.
func follow(v ref.Val, relative string) ref.Val {
	for _, step := range steps(relative) {
		indexer, ok := v.(traits.Indexer)
		if !ok {
			return types.NullValue
		}
		var key ref.Val = types.String(step.name)
		if step.index >= 0 {
			key = types.Int(step.index)
			if list, ok := v.(traits.Lister); !ok || types.Int(step.index) >= list.Size().(types.Int) {
				return types.NullValue
			}
		}
		if m, ok := v.(traits.Mapper); ok {
			found, there := m.Find(key)
			if !there {
				return types.NullValue
			}
			v = found
			continue
		}
		v = indexer.Get(key)
		if types.IsError(v) {
			return types.NullValue
		}
	}
	return v
}

// step is a part of a path: a field, an item (index 0 or more) or a key.
type step struct {
	name  string
	index int
	key   bool
}

// steps reads a path such as spec.ports[0].name or limits[cpu].
func steps(path string) []step {
	var list []step
	for path != "" {
		if strings.HasPrefix(path, ".[") { // kube-apiserver has such fields
			inside, after, _ := strings.Cut(path[1:], "]")
			list, path = append(list, step{name: inside + "]", index: -1}), after
			continue
		}
		path = strings.TrimPrefix(path, ".")
		if rest, ok := strings.CutPrefix(path, "["); ok {
			inside, after, _ := strings.Cut(rest, "]")
			if i, err := strconv.Atoi(inside); err == nil && i >= 0 {
				list = append(list, step{index: i})
			} else {
				list = append(list, step{name: inside, index: -1, key: true})
			}
			path = after
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end > 0 {
			list = append(list, step{name: path[:end], index: -1})
		}
		path = path[end:]
	}
	return list
}

// appendPath adds a path to another.
func appendPath(path *field.Path, relative string) *field.Path {
	for _, s := range steps(relative) {
		switch {
		case s.index >= 0:
			path = path.Index(s.index)
		case s.key:
			path = path.Key(s.name)
		default:
			path = path.Child(s.name)
		}
	}
	return path
}

func length(value any) int {
	switch v := value.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	case string:
		return len(v)
	}
	return 0
}
