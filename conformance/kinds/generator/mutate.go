package generator

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

const (
	// maxBytes bounds what a mutation that repeats a value may make of an object.
	maxBytes = 64 << 10
	// maxItems bounds lists.
	maxItems = 200
)

// Known maps names of properties to values that the seeds of a kind have there: most of them are valid.
type Known map[string][]any

// Learn adds the values of an object.
func (k Known) Learn(object map[string]any) {
	for _, s := range sites(object, nil) {
		if !s.meta && !s.root && s.list == nil && len(k[s.name]) < 20 {
			k[s.name] = append(k[s.name], Copy(s.value))
		}
	}
}

type mutation struct {
	src   *Source
	known Known
	root  map[string]any
	all   []*site
}

// A change is one way to change an object. It returns false where the object has nothing to change in this way.
type change struct {
	name   string
	weight int
	apply  func(*mutation) bool
}

// changes are all ways, in an order that must stay: the choice depends on it.
var changes = []change{
	{"drop", 14, (*mutation).drop},
	{"empty", 8, (*mutation).empty},
	{"add", 24, (*mutation).add},
	{"replace", 22, (*mutation).replace},
	{"almost", 4, (*mutation).almostSame},
	{"duplicate", 5, (*mutation).duplicate},
	{"reorder", 3, (*mutation).reorder},
	{"key", 4, (*mutation).mergeKey},
	{"swap", 10, (*mutation).swap},
	{"type", 3, (*mutation).wrongType},
	{"unknown", 3, (*mutation).unknown},
	{"copy", 8, (*mutation).copyFrom},
	{"null", 4, (*mutation).null},
	{"huge", 2, (*mutation).huge},
	{"metadata", 12, (*mutation).changeMetadata},
}

var totalWeight = func() (sum int) {
	for _, c := range changes {
		sum += c.weight
	}
	return sum
}()

// Mutate returns a copy of the object with n changes, and their names.
func Mutate(src *Source, object map[string]any, s *Schema, known Known, n int) (map[string]any, []string) {
	m := &mutation{src: src, known: known, root: Copy(object).(map[string]any)}
	var done []string
	for tries := 0; len(done) < n && tries < 10*n; tries++ {
		m.all = sites(m.root, s)
		c := m.choose()
		if c.apply(m) {
			done = append(done, c.name)
		}
	}
	return m.root, done
}

// Number returns how many changes an object gets: mostly one, since the second hides what the first does.
func Number(src *Source) int {
	switch n := src.IntN(100); {
	case n < 6:
		return 0
	case n < 55:
		return 1
	case n < 80:
		return 2
	case n < 92:
		return 3
	}
	return 4 + src.IntN(4)
}

func (m *mutation) choose() change {
	n := m.src.IntN(totalWeight)
	for _, c := range changes {
		if n -= c.weight; n < 0 {
			return c
		}
	}
	return changes[0]
}

// where returns a site that fits, or nil. Those of metadata are rare: they have changes of their own.
func (m *mutation) where(fits func(*site) bool) *site {
	meta := m.src.Chance(7)
	var found []*site
	for _, s := range m.all {
		if s.meta == meta && fits(s) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return pick(m.src, found)
}

func always(s *site) bool { return !s.root }

func (m *mutation) drop() bool {
	s := m.where(always)
	if s != nil {
		s.remove()
	}
	return s != nil
}

func (m *mutation) null() bool {
	s := m.where(always)
	if s != nil {
		s.set(nil)
	}
	return s != nil
}

func (m *mutation) empty() bool {
	s := m.where(func(s *site) bool { return s.value != nil && !s.root })
	if s == nil {
		return false
	}
	switch s.value.(type) {
	case string:
		s.set("")
	case bool:
		s.set(false)
	case map[string]any:
		s.set(map[string]any{})
	case []any:
		s.set([]any{})
	default:
		s.set(int64(0))
	}
	return true
}

// add adds a property that an object lacks, or an item to a list.
func (m *mutation) add() bool {
	s := m.where(func(s *site) bool { return len(absent(s)) > 0 || s.schema != nil && s.schema.Type == "array" })
	if s == nil {
		return false
	}
	if list, ok := s.value.([]any); ok {
		if len(list) >= maxItems {
			return false
		}
		s.set(append(slices.Clone(list), m.value(s.schema.Items, s.name, 0)))
		return true
	}
	keys := absent(s)
	if len(keys) == 0 {
		return false
	}
	key := pick(m.src, keys)
	s.value.(map[string]any)[key] = m.value(s.schema.Properties[key], key, 0)
	return true
}

func (m *mutation) replace() bool {
	s := m.where(func(s *site) bool { return scalar(s.value) })
	if s == nil {
		return false
	}
	s.set(m.value(s.schema, s.name, 0))
	return true
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func (m *mutation) almostSame() bool {
	s := m.where(func(s *site) bool { text, ok := s.value.(string); return ok && text != "" })
	if s == nil {
		return false
	}
	s.set(m.almost(s.value.(string)))
	return true
}

func (m *mutation) duplicate() bool {
	s := m.where(func(s *site) bool { list, ok := s.value.([]any); return ok && len(list) > 0 && len(list) < maxItems })
	if s == nil {
		return false
	}
	list := slices.Clone(s.value.([]any))
	s.set(append(list, Copy(pick(m.src, list))))
	return true
}

func (m *mutation) reorder() bool {
	s := m.where(func(s *site) bool { list, ok := s.value.([]any); return ok && len(list) > 1 })
	if s == nil {
		return false
	}
	list := slices.Clone(s.value.([]any))
	m.src.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	s.set(list)
	return true
}

// mergeKey gives an item the key of another, or a new one.
func (m *mutation) mergeKey() bool {
	s := m.where(func(s *site) bool {
		_, ok := s.value.(map[string]any)
		return ok && s.list != nil && s.list.schema != nil && s.list.schema.MergeKey != ""
	})
	if s == nil {
		return false
	}
	key := s.list.schema.MergeKey
	other, _ := pick(m.src, s.list.value.([]any)).(map[string]any)
	item := s.value.(map[string]any)
	if value, ok := other[key]; ok && m.src.Chance(40) {
		item[key] = Copy(value)
		return true
	}
	item[key] = m.value(s.schema.property(key), key, 0)
	return true
}

// swap replaces a property by another one: members of a union are properties of one object.
func (m *mutation) swap() bool {
	s := m.where(func(s *site) bool {
		object, ok := s.value.(map[string]any)
		return ok && len(object) > 0 && len(absent(s)) > 0
	})
	if s == nil {
		return false
	}
	object := s.value.(map[string]any)
	old := pick(m.src, slices.Sorted(maps.Keys(object)))
	key := pick(m.src, absent(s))
	delete(object, old)
	object[key] = m.value(s.schema.Properties[key], key, 0)
	return true
}

func (m *mutation) wrongType() bool {
	s := m.where(always)
	if s == nil {
		return false
	}
	s.set(otherType(s.value))
	return true
}

func (m *mutation) unknown() bool {
	s := m.where(func(s *site) bool {
		_, ok := s.value.(map[string]any)
		return ok && s.schema != nil && len(s.schema.Keys) > 0
	})
	if s == nil {
		return false
	}
	key := "unknownField"
	if m.src.Chance(40) {
		key = m.almost(pick(m.src, s.schema.Keys))
	}
	s.value.(map[string]any)[key] = pick(m.src, names)
	return true
}

// copyFrom copies a value to another place with the same schema, or the same type.
func (m *mutation) copyFrom() bool {
	from := m.where(always)
	if from == nil || from.schema == nil {
		return false
	}
	to := m.where(func(s *site) bool {
		return s != from && s.schema != nil && s.schema.Name == from.schema.Name && s.schema.Type == from.schema.Type
	})
	if to == nil || m.large(from.value) {
		return false
	}
	to.set(Copy(from.value))
	return true
}

// large reports whether the object and the value together are larger than what a request may be.
func (m *mutation) large(value any) bool { return size(m.root)+size(value) > maxBytes }

func size(value any) int {
	data, err := json.Marshal(Fill(value, func(Slot) (any, bool) { return "slot", true }))
	if err != nil {
		return maxBytes
	}
	return len(data)
}

// huge repeats an item of a list. Items with a merge key get different ones, mostly.
func (m *mutation) huge() bool {
	s := m.where(func(s *site) bool { list, ok := s.value.([]any); return ok && len(list) > 0 })
	if s == nil {
		return false
	}
	list := slices.Clone(s.value.([]any))
	item := pick(m.src, list)
	n := min(20+m.src.IntN(maxItems-20), (maxBytes-size(m.root))/(size(item)+1)) - len(list)
	different := m.src.Chance(80)
	for i := range max(n, 0) {
		next := Copy(item)
		if object, ok := next.(map[string]any); ok && different && s.schema != nil && s.schema.MergeKey != "" {
			object[s.schema.MergeKey] = numbered(object[s.schema.MergeKey], i)
		} else if text, ok := next.(string); ok && different {
			next = numbered(text, i)
		}
		list = append(list, next)
	}
	s.set(list)
	return n > 0
}

func numbered(value any, i int) any {
	switch v := value.(type) {
	case string:
		return v + strconv.Itoa(i)
	case int64:
		return v + int64(i)
	}
	return value
}
