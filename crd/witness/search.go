package witness

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier"
)

// variable is a place in objects, and what is tried there.
type variable struct {
	path   []Step
	values func() []any // made when they are needed: most changes have a witness among the first
}

// absent stands for no value, doubled for a list with its first item twice.
type (
	absent  struct{}
	doubled struct{}
)

// run tries candidates until one is a witness: first the smallest objects, then each value of each variable, then pairs,
// then more at a time.
func (s *search) run() (Witness, bool) {
	base, ok := s.base()
	if !ok {
		return Witness{}, false
	}
	if w, ok := s.try(base); ok {
		return w, true
	}
	for _, h := range s.focus.Hints {
		if w, ok := s.try(s.put(base, s.focus.Path, decode([]byte(h)))); ok {
			return w, true
		}
	}
	vars := s.variables()
	for _, v := range vars {
		for _, x := range v.values() {
			if s.over() {
				return Witness{}, false
			}
			if w, ok := s.try(s.put(base, v.path, x)); ok {
				return w, true
			}
		}
	}
	return s.together(base, vars)
}

// together tries values of several variables at a time, the first ones first.
func (s *search) together(base any, vars []variable) (Witness, bool) {
	const most = 10
	for sum := range 2 * most {
		for i := range vars {
			for j := range i {
				for a := range min(sum+1, most, len(vars[i].values())) {
					b := sum - a
					if b >= min(most, len(vars[j].values())) {
						continue
					}
					if s.left <= s.reserve(len(vars)) || s.over() {
						return s.mixed(base, vars)
					}
					if w, ok := s.try(s.put(s.put(base, vars[j].path, vars[j].values()[b]), vars[i].path, vars[i].values()[a])); ok {
						return w, true
					}
				}
			}
		}
	}
	return s.mixed(base, vars)
}

// reserve is what mixed may use.
func (s *search) reserve(vars int) int {
	if vars < 3 {
		return 0
	}
	return perFocus / 3
}

// mixed gives all variables values, by a fixed sequence of pseudorandom numbers.
func (s *search) mixed(base any, vars []variable) (Witness, bool) {
	if len(vars) < 3 {
		return Witness{}, false
	}
	seed := uint32(1)
	for !s.over() {
		o := base
		for _, v := range vars {
			seed = seed*1664525 + 1013904223
			values := v.values()
			o = s.put(o, v.path, values[int(seed>>16)%min(len(values), 12)])
		}
		if w, ok := s.try(o); ok {
			return w, true
		}
	}
	return Witness{}, false
}

// base returns a small valid object, with a value at the parent of the focus if one was found.
func (s *search) base() (any, bool) {
	if s.Pair.base == nil {
		s.nodes = 0
		o, ok := s.minimal(parts(nil).with(s.old.tree, false), 0, 0).(object)
		if !ok {
			o = object{}
		}
		maps.Copy(o, s.head)
		s.Pair.base, _, _ = s.beyond(o, 40, 300)
	}
	path := s.focus.Path
	if len(path) < 2 {
		return s.Pair.base, true
	}
	path = path[:len(path)-1]
	key := text(path)
	if o, ok := s.bases[key]; ok {
		return o, true
	}
	// Start from what is known of the nearest place above.
	start := s.Pair.base
	for n := len(path) - 1; n > 0; n-- {
		if o, ok := s.bases[text(path[:n])]; ok {
			start = o
			break
		}
	}
	o := start
	if !s.exists(start, path) {
		s.nodes = 0
		made, _, ok := s.beyond(s.put(start, path, s.minimal(s.at(&s.old, path, false), 0, 0)), 12, 80)
		if ok && s.exists(made, path) {
			o = made
		}
	}
	s.bases[key] = o
	return o, true
}

// beyond repairs an object that many searches start from: it does not count for this one.
func (s *search) beyond(o any, rounds, most int) (any, []byte, bool) {
	keep := s.left
	s.left = perFocus
	defer func() { s.left = keep }()
	return s.repairWithin(o, rounds, most)
}

// exists reports whether an object has a value at a place.
func (s *search) exists(o any, path []Step) bool {
	for _, step := range path {
		switch v := o.(type) {
		case object:
			if step.Into == Value && len(v) > 0 {
				o = v[slices.Sorted(maps.Keys(v))[0]]
				continue
			}
			x, ok := v[step.Name]
			if !ok || step.Into != Field {
				return false
			}
			o = x
		case list:
			if step.Into != Item || len(v) == 0 {
				return false
			}
			o = v[0]
		default:
			return false
		}
	}
	return true
}

// put returns an object with a value at a place, or without one. Missing parents are made.
func (s *search) put(o any, path []Step, v any) any {
	s.nodes = 0
	return s.place(o, parts(nil).with(s.old.tree, false), path, v, 0)
}

func (s *search) place(o any, p parts, path []Step, v any, depth int) any {
	if len(path) == 0 {
		switch v.(type) {
		case absent:
			return o
		case doubled:
			if l, ok := o.(list); ok && len(l) > 0 {
				return append(slices.Clip(l), l[0])
			}
			return o
		}
		return v
	}
	step := path[0]
	child := p.step(step, false)
	if step.Into == Item {
		l, _ := o.(list)
		if len(l) == 0 {
			if l = s.items(p, 1, depth); len(l) == 0 {
				return o
			}
		}
		l = slices.Clone(l)
		l[0] = s.place(l[0], child, path[1:], v, depth+1)
		return l
	}
	m, _ := o.(object)
	m = maps.Clone(m)
	if m == nil {
		m = object{}
	}
	name := step.Name
	if step.Into == Value {
		name = "a"
		if keys := slices.Sorted(maps.Keys(m)); len(keys) > 0 {
			name = keys[0]
		}
	}
	if _, none := v.(absent); none && len(path) == 1 {
		delete(m, name)
		return m
	}
	inner, ok := m[name]
	if !ok {
		if _, none := v.(absent); none {
			return m
		}
		inner = s.minimal(child, 0, depth+1)
	}
	m[name] = s.place(inner, child, path[1:], v, depth+1)
	return m
}

// variables returns what may make a difference to the focus.
func (s *search) variables() (vars []variable) {
	const most = 24
	more := facts{}
	var paths [][]Step
	switch f := &s.focus; {
	case f.Rule != nil:
		more = read(f.Rule.Rule, f.Path, s.kindAt)
		paths = more.paths
	case f.Keyword == "anyOf", f.Keyword == "oneOf", f.Keyword == "not", f.Keyword == "x-kubernetes-unions":
		for _, name := range mentioned(s.at(&s.now, f.Path, true)) {
			paths = append(paths, append(slices.Clip(f.Path), Step{Name: name}))
		}
	}
	paths = append(paths, s.focus.Path)
	switch p := s.at(&s.old, s.focus.Path, false); {
	case p.kind() == "array":
		paths = append(paths, append(slices.Clip(s.focus.Path), Step{Into: Item}))
	case p.isMap():
		paths = append(paths, append(slices.Clip(s.focus.Path), Step{Into: Value}))
	}
	// What above the place has to be there is there in the base; what may not be there matters as well.
	for n := len(s.focus.Path) - 1; n > 0 && s.focus.Rule == nil; n-- {
		paths = append(paths, s.focus.Path[:n])
		break
	}
	var seen []string
	for _, path := range paths {
		if key := text(path); slices.Contains(seen, key) || len(vars) >= most {
			continue
		} else {
			seen = append(seen, key)
		}
		if len(path) == 0 {
			continue
		}
		vars = append(vars, variable{path, sync.OnceValue(func() []any {
			p := s.at(&s.old, path, false)
			values := s.domain(p, append(s.at(&s.now, path, true), more.bounds...), more.literals)
			if path[len(path)-1].Into == Field {
				values = slices.Insert(values, min(1, len(values)), any(absent{}))
			}
			if p.kind() == "array" {
				values = slices.Insert(values, 0, any(doubled{}))
			}
			return values
		})})
	}
	return vars
}

// text writes a path.
func text(path []Step) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteString(strconv.Itoa(int(s.Into)) + s.Name + "\x00")
	}
	return b.String()
}

// mentioned returns the fields that logical keywords look at.
func mentioned(p parts) (names []string) {
	for _, q := range p[min(1, len(p)):] {
		names = append(names, q.Required...)
		for _, x := range q.Properties {
			names = append(names, x.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// at returns what a schema says about a place.
func (s *search) at(side *side, path []Step, all bool) parts {
	p := parts(nil).with(side.tree, all)
	for _, step := range path {
		p = p.step(step, all)
	}
	return p
}

// kindAt returns the type of a place in the new schema.
func (s *search) kindAt(path []Step) string { return s.at(&s.now, path, false).kind() }

// repair changes an object until the old schema accepts it, and returns what it stores.
func (s *search) repair(o any) (any, []byte, bool) { return s.repairWithin(o, 6, 16) }

func (s *search) repairWithin(o any, rounds, most int) (any, []byte, bool) {
	stored, errs, ok := s.admit(o)
	for range rounds {
		if !ok || len(errs) == 0 || s.exhausted() || most <= 0 {
			break
		}
		better := false
		for i := range errs[:min(len(errs), 2)] {
			for _, candidate := range s.fixes(o, &errs[i]) {
				if most--; most < 0 || s.over() {
					break
				}
				bytes, left, fine := s.admit(candidate)
				if fine && (len(left) < len(errs) || len(left) == len(errs) && weight(left) < weight(errs)) {
					o, stored, errs, better = candidate, bytes, left, true
					break
				}
			}
			if better {
				break
			}
		}
		if !better {
			break
		}
	}
	return o, stored, ok && len(errs) == 0
}

// weight makes errors of fields count more than those of rules: an object is nearly right if only rules fail.
func weight(errs []espalier.Violation) (n int) {
	for i := range errs {
		if errs[i].Keyword != "x-kubernetes-validations" {
			n += 2
		} else {
			n++
		}
	}
	return n
}

// fixes returns objects that may not have a violation.
func (s *search) fixes(o any, v *espalier.Violation) (list []any) {
	where, steps, ok := s.locate(o, v.At)
	name := ""
	if !ok {
		parent := up(v.At)
		name = strings.Trim(v.At[len(parent):], `.[]"`)
		if where, steps, ok = s.locate(o, parent); !ok {
			return nil
		}
	}
	replace := func(x any) {
		if changed, ok := set(o, where, x); ok {
			list = append(list, changed)
		}
	}
	p := s.at(&s.old, steps, false)
	value, _ := get(o, where)
	switch {
	case name != "": // a field that is missing, or a rule about one
		s.nodes = 0
		for n := range 3 {
			replace(s.place(value, p, []Step{{Name: name}}, s.minimal(p.property(name, false), n, 0), 0))
		}
	case v.Keyword == "x-kubernetes-validations":
		list = append(list, s.ruleFixes(o, p, steps, v)...)
	case v.Keyword == "maxProperties":
		m, _ := value.(object)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if n := len(steps); n < len(s.focus.Path) && slices.Equal(steps, s.focus.Path[:n]) && s.focus.Path[n].Name == name {
				continue // it leads to the focus
			}
			x := maps.Clone(m)
			delete(x, name)
			replace(x)
		}
	case v.Keyword == "anyOf", v.Keyword == "oneOf", v.Keyword == "not":
		m, isObject := value.(object)
		if !isObject {
			break
		}
		for _, q := range p {
			for _, branches := range [][]*schema{q.AnyOf, q.OneOf} {
				for i := range branches {
					if len(branches) > 1 && i < 8 {
						replace(s.follow(m, p, branches, i))
					}
				}
			}
			if q.Not != nil {
				for _, name := range q.Not.Required {
					x := maps.Clone(m)
					delete(x, name)
					replace(x)
				}
			}
		}
	}
	if m, ok := value.(object); ok && v.Keyword == "required" {
		x := maps.Clone(m)
		s.nodes = 0
		for _, name := range p.required() {
			if _, ok := x[name]; !ok {
				x[name] = s.minimal(p.property(name, false), 0, 0)
			}
		}
		replace(x)
	}
	if len(list) == 0 {
		for _, x := range s.known("", steps, nil, nil) {
			replace(x)
		}
	}
	return list[:min(len(list), 24)]
}

// follow returns an object that satisfies one branch. The others require nothing of it.
func (s *search) follow(m object, p parts, branches []*schema, chosen int) any {
	x := maps.Clone(m)
	for i, b := range branches {
		if i == chosen {
			continue
		}
		for _, name := range b.Required {
			if !slices.Contains(branches[chosen].Required, name) && !slices.Contains(p.required(), name) {
				delete(x, name)
			}
		}
	}
	s.nodes = 0
	q := p.with(branches[chosen], false)
	for _, name := range branches[chosen].Required {
		x[name] = s.minimal(q.property(name, false), 0, 0)
	}
	for _, f := range branches[chosen].Properties {
		if _, ok := x[f.Name]; ok {
			x[f.Name] = s.minimal(q.property(f.Name, false), 0, 0)
		}
	}
	return x
}

// ruleFixes changes what the rules at a place look at.
func (s *search) ruleFixes(o any, p parts, steps []Step, v *espalier.Violation) (list []any) {
	if len(p) == 0 {
		return nil
	}
	for i := range p[0].Validations {
		r := &p[0].Validations[i]
		if !strings.Contains(v.Detail, r.Message) || r.Message == "" && r.MessageExpression == "" && !strings.Contains(v.Detail, strings.TrimSpace(r.Rule)) {
			continue
		}
		found := read(r.Rule, steps, s.kindAt)
		for _, path := range found.paths {
			if len(path) == 0 {
				continue
			}
			values := s.known(r.Rule, path, found.bounds, found.literals)
			if path[len(path)-1].Into == Field {
				values = slices.Insert(values, min(1, len(values)), any(absent{}))
			}
			for _, x := range values[:min(len(values), 6)] {
				list = append(list, s.put(o, path, x))
			}
		}
	}
	return list
}

// known returns the domain of a place, beside a rule, and keeps it: repairs need it often.
func (s *search) known(rule string, path []Step, bounds parts, literals []string) []any {
	key := rule + "\x00" + text(path)
	values, ok := s.domains[key]
	if !ok {
		values = s.domain(s.at(&s.old, path, false), bounds, literals)
		s.domains[key] = values
	}
	return slices.Clip(values)
}

// locate finds the value that a field path names.
func (s *search) locate(o any, at string) ([]index, []Step, bool) {
	for _, n := range nodes(o) {
		if !slices.Contains(n.texts, at) {
			continue
		}
		var steps []Step
		p := parts(nil).with(s.old.tree, false)
		for _, x := range n.path {
			step := Step{Name: x.Name}
			switch {
			case x.N >= 0:
				step = Step{Into: Item}
			case len(p) > 0 && p[0].Property(x.Name) == nil && p.isMap():
				step = Step{Into: Value}
			}
			steps = append(steps, step)
			p = p.step(step, false)
		}
		return n.path, steps, true
	}
	return nil, nil, false
}
