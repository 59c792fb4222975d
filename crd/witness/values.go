package witness

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// minimal returns a small value that satisfies the parts, or nearly: the engine has the last word. Other values of n
// give other ones.
func (s *search) minimal(p parts, n, depth int) any {
	const maxDepth = 64
	s.spend(1)
	if s.nodes++; s.nodes > maxNodes || depth > maxDepth || s.exhausted() {
		s.cut = true
		return literal("null")
	}
	if v, ok := listed(p, n); ok {
		return v
	}
	choice := n
	for _, q := range slices.Clone(p) {
		for _, branches := range [][]*schema{q.AnyOf, q.OneOf} {
			if len(branches) > 1 {
				p = p.with(branches[choice%len(branches)], false)
			}
		}
	}
	if v, ok := listed(p, n); ok {
		return v
	}
	switch p.kind() {
	case "object":
		return s.minimalObject(p, n, depth)
	case "array":
		count := p.least(minItems)
		return s.items(p, int(min(count, maxNodes)), depth)
	case "string":
		list := s.texts(p)
		text := list[n%len(list)]
		// Items of long lists may have to differ.
		if n >= len(list) {
			if more := text + strconv.Itoa(n); admits(p, more) {
				text = more
			}
		}
		return quoted(text)
	case "integer", "number", "int-or-string":
		good, bad := numbers(p, nil)
		if len(good) == 0 {
			good = bad
		}
		return literal(good[n%len(good)])
	case "boolean":
		return literal([]string{"true", "false"}[n%2])
	}
	return quoted(string(rune('a' + n%26)))
}

// texts returns strings that the parts admit.
func (s *search) texts(p parts) []string {
	var key [4]*schema
	if len(p) > len(key) {
		return s.candidates(p, nil)
	}
	copy(key[:], p)
	list, ok := s.strings[key]
	if !ok {
		list = s.candidates(p, nil)
		s.strings[key] = list
	}
	return list
}

// listed returns a value that all enums list.
func listed(p parts, n int) (any, bool) {
	at := slices.IndexFunc(p, func(s *schema) bool { return len(s.Enum) > 0 })
	if at < 0 {
		return nil, false
	}
	var fits []literal
	for _, e := range p[at].Enum {
		if e.Raw[0] == 'n' {
			continue
		}
		if !slices.ContainsFunc(p[at+1:], func(s *schema) bool {
			return len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(x jsonValue) bool { return string(x.Raw) == string(e.Raw) })
		}) {
			fits = append(fits, e.Raw)
		}
	}
	if len(fits) == 0 {
		return nil, false
	}
	return decode(fits[n%len(fits)]), true
}

func (s *search) minimalObject(p parts, n, depth int) any {
	o := object{}
	for _, name := range p.required() {
		child := p.property(name, false)
		if !child.defaults() {
			o[name] = s.minimal(child, n, depth+1)
		}
	}
	if p.embedded() {
		o["apiVersion"], o["kind"], o["metadata"] = quoted("v1"), quoted("ConfigMap"), object{"name": quoted("a")}
	}
	s.fill(o, p, int(min(p.least(minProperties), maxNodes)), depth)
	return o
}

// fill adds members until there are enough.
func (s *search) fill(o object, p parts, count, depth int) {
	for i := 0; len(o) < count && p.isMap() && s.nodes < maxNodes; i++ {
		if name := key(i); o[name] == nil {
			o[name] = s.minimal(p.values(false), 0, depth+1)
		}
	}
	for _, q := range p.properties() {
		if len(o) >= count {
			return
		}
		if o[q.Name] == nil {
			o[q.Name] = s.minimal(p.property(q.Name, false), 0, depth+1)
		}
	}
}

// key is a name for a member of a map.
func key(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return "k" + strconv.Itoa(i)
}

// items makes a list of items that differ.
func (s *search) items(p parts, count, depth int) list {
	l := list{}
	child := p.items(false)
	for i := range count {
		if s.nodes > maxNodes {
			s.cut = true
			break
		}
		v := s.minimal(child, i, depth+1)
		if o, ok := v.(object); ok && len(p) > 0 {
			for _, k := range p.keys() {
				o[k] = s.minimal(child.property(k, false), i, depth+1)
			}
		}
		l = append(l, v)
	}
	return l
}

// numbers returns literals that matter to the parts: those that satisfy their bounds, and others, which clusters may accept
// all the same. others are schemas whose bounds matter as well.
func numbers(p, others parts, more ...string) (good, bad []string) {
	whole := p.kind() == "integer"
	var near []float64
	add := func(f float64) { near = append(near, f, f+1, f-1, math.Floor(f), math.Ceil(f)) }
	for _, s := range slices.Concat(p, others) {
		for _, b := range []*float64{s.Minimum, s.Maximum, s.MultipleOf} {
			if b != nil {
				add(*b)
				if !whole {
					near = append(near, *b+0.5, *b-0.5)
				}
			}
		}
		if s.MultipleOf != nil && s.Minimum != nil && *s.MultipleOf > 0 {
			near = append(near, math.Ceil(*s.Minimum / *s.MultipleOf)**s.MultipleOf)
		}
		if s.Format == "int32" {
			near = append(near, math.MaxInt32, math.MaxInt32+1, math.MinInt32, math.MinInt32-1)
		}
	}
	for _, m := range more {
		if f, err := strconv.ParseFloat(m, 64); err == nil {
			add(f)
		}
	}
	near = append(near, 1, 2, 0, -1, 3, 5, 10, 100, 65536, 1<<40)
	if !whole {
		near = append(near, 0.5, 1e300)
	}
	for _, f := range near {
		if whole && f != math.Trunc(f) || math.Abs(f) > 1<<62 && whole {
			continue
		}
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if math.Abs(f) > 1e20 {
			text = strconv.FormatFloat(f, 'g', -1, 64)
		}
		if slices.Contains(good, text) || slices.Contains(bad, text) {
			continue
		}
		if within(p, f) {
			good = append(good, text)
		} else {
			bad = append(bad, text)
		}
	}
	if len(good) == 0 {
		return good, bad
	}
	for _, text := range []string{"9223372036854775807", "-9223372036854775808"} {
		if f, err := strconv.ParseFloat(text, 64); err == nil && within(p, f) {
			good = append(good, text)
		}
	}
	// Items of a list take one each, so there are always enough.
	for i := 0; len(good) < 40 && i < 60; i++ {
		if text := strconv.Itoa(i); !slices.Contains(good, text) && within(p, float64(i)) {
			good = append(good, text)
		}
	}
	return good, bad
}

func within(p parts, f float64) bool {
	return !slices.ContainsFunc(p, func(s *schema) bool {
		return s.Minimum != nil && (f < *s.Minimum || s.ExclusiveMinimum && f == *s.Minimum) ||
			s.Maximum != nil && (f > *s.Maximum || s.ExclusiveMaximum && f == *s.Maximum) ||
			s.MultipleOf != nil && *s.MultipleOf != 0 && math.Mod(f, *s.MultipleOf) != 0 ||
			s.Format == "int32" && (f > math.MaxInt32 || f < math.MinInt32)
	})
}

// maxValues is how many values a variable gets.
const maxValues = 48

// domain returns the values to try at a place: p is what the old schema says about it, others what the new one
// says, more are literals of rules.
func (s *search) domain(p, others parts, more []string) (values []any) {
	seen := map[string]bool{}
	add := func(v any) {
		if text := string(encode(v)); len(values) < maxValues && !seen[text] {
			seen[text] = true
			values = append(values, v)
		}
	}
	addNumbers := func() {
		good, bad := numbers(p, others, more...)
		// There are always enough good ones for the items of lists: here a few do.
		for _, t := range slices.Concat(good[:min(len(good), maxValues/2)], bad) {
			add(literal(t))
		}
	}
	s.nodes = 0
	add(s.minimal(p, 0, 0))
	if p.nullable() || len(p) == 0 {
		add(literal("null"))
	}
	for _, q := range slices.Concat(p, others) {
		for i, e := range q.Enum {
			if i >= maxValues/3 {
				break
			}
			add(decode(e.Raw))
		}
	}
	switch kind := p.kind(); kind {
	case "string":
		for _, t := range s.candidates(p, others, more...) {
			add(quoted(t))
		}
	case "integer", "number":
		addNumbers()
	case "int-or-string":
		numeric, doubtful := numbers(p, others, more...)
		numeric = append(numeric, doubtful...)
		textual := s.candidates(p, others, append(slices.Clip(more), "50%", "http")...)
		for i := range max(len(numeric), len(textual)) {
			if i < len(numeric) {
				add(literal(numeric[i]))
			}
			if i < len(textual) {
				add(quoted(textual[i]))
			}
		}
	case "boolean":
		add(literal("true"))
		add(literal("false"))
	case "array":
		s.lists(p, others, add)
	case "object":
		s.objects(p, others, more, add)
	default:
		for _, text := range []string{`"a"`, `1`, `1.5`, `true`, `{}`, `{"a":"b"}`, `[]`, `["a"]`, `[{"a":"b"}]`, `{"a":{"b":1}}`} {
			add(decode([]byte(text)))
		}
		for _, t := range s.candidates(p, others, more...) {
			if len(values) < maxValues*2/3 {
				add(quoted(t))
			}
		}
		addNumbers()
	}
	return values
}

// counts returns the sizes that limits make interesting.
func (s *search) counts(p, others parts, most, least func(*schema) *int64) (list []int) {
	list = []int{0, 1, 2}
	add := func(n *int64, at ...int64) {
		if n == nil || *n < 0 {
			return
		}
		if *n >= maxCount {
			s.cut = true
			return
		}
		if *n < few {
			at = []int64{-1, 0, 1}
		}
		for _, d := range at {
			list = append(list, int(max(0, *n+d)))
		}
	}
	for _, q := range p {
		add(most(q), 0)
		add(least(q), 0)
	}
	for _, q := range others {
		add(most(q), 1)
		add(least(q), -1)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *search) lists(p, others parts, add func(any)) {
	for _, n := range s.counts(p, others, maxItems, minItems) {
		s.nodes = 0
		add(s.items(p, n, 0))
	}
	s.nodes = 0
	if l := s.items(p, 1, 0); len(l) == 1 {
		add(list{l[0], l[0]})
	}
	// Items that differ in one field only have equal keys.
	child := p.items(false)
	properties := child.properties()
	for _, q := range properties[:min(len(properties), 8)] {
		if l := s.items(p, 2, 0); len(l) == 2 {
			a, okA := l[0].(object)
			_, okB := l[1].(object)
			if okA && okB {
				b := object{}
				for k, v := range a {
					b[k] = v
				}
				b[q.Name] = s.minimal(child.property(q.Name, false), 1, 1)
				add(list{a, b})
			}
		}
	}
	for n := range 3 {
		s.nodes = 0
		add(list{s.minimal(child, n, 1)})
	}
	if child.nullable() || len(child) == 0 {
		add(list{literal("null")})
	}
}

func (s *search) objects(p, others parts, more []string, add func(any)) {
	fresh := func(n int) object {
		s.nodes = 0
		o, ok := s.minimal(p, n, 0).(object)
		if !ok {
			o = object{}
		}
		return o
	}
	for n := range 4 {
		add(fresh(n))
	}
	properties := p.properties()
	if p.isMap() || len(properties) > 0 {
		for _, n := range s.counts(p, others, maxProperties, minProperties) {
			o := fresh(0)
			s.fill(o, p, n, 0)
			add(o)
		}
	}
	if p.isMap() {
		names := append(slices.Clip(more), "", "A", "a/b", "-", "_", "é", strings.Repeat("a", 64), strings.Repeat("a", 254), strings.Repeat("a", 254)+"/a", "a b")
		for _, name := range names[:min(len(names), maxValues/2)] {
			s.nodes = 0
			add(object{name: s.minimal(p.values(false), 0, 1)})
		}
	}
	if p.preserves() || p.isMap() {
		for _, text := range []string{`"b"`, `{"a":"b"}`, `1`, `["a"]`} {
			o := fresh(0)
			o["unknown"] = decode([]byte(text))
			add(o)
		}
	}
	for _, q := range properties[:min(len(properties), maxValues)] {
		o := fresh(0)
		if _, ok := o[q.Name]; ok {
			delete(o, q.Name)
		} else {
			o[q.Name] = s.minimal(p.property(q.Name, false), 0, 1)
		}
		add(o)
	}
}
