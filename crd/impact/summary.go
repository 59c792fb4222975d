package impact

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	maxGroups   = 500
	maxCounted  = 200    // managers and owners, each
	maxExamples = 3      // objects of a group
	maxDetails  = 20_000 // paths and refusals of all objects that are listed
)

// Summary counts the outcomes of many objects. The zero value is ready to use, and lists no
// objects.
type Summary struct {
	Objects  int64     `json:"objects"`
	Affected int64     `json:"affected"`
	Breaking int64     `json:"breaking"` // of the affected, those with an effect of [Breaking]
	Losing   int64     `json:"losing"`   // of the affected, those with an effect of [Loss]
	Refused  int64     `json:"refusedAlready,omitempty"`
	Counts   Count     `json:"effects"`
	Versions Count     `json:"storedVersions"`
	Managers Count     `json:"managers,omitempty"` // of affected objects
	Owners   Count     `json:"owners,omitempty"`   // kinds
	Groups   []Group   `json:"groups,omitempty"`
	Omitted  int64     `json:"omittedGroups,omitempty"` // outcomes in groups beyond the limit
	Listed   []Outcome `json:"listed,omitempty"`
	Most     int       `json:"-"` // objects that Listed takes
	index    map[groupKey]int
	details  int // of the objects that are listed
}

// Count has numbers by name.
type Count map[string]int64

// add counts a name, if there is room for it.
func (c *Count) add(name string, n int64) {
	if *c == nil {
		*c = Count{}
	}
	if _, ok := (*c)[name]; !ok && len(*c) >= maxCounted {
		name = "(others)"
	}
	(*c)[name] += n
}

// Sorted returns the names, the most frequent first.
func (c Count) Sorted() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b)) })
}

// Group is a number of objects to which the same happens at the same place.
type Group struct {
	Effect  Effects  `json:"effect"`
	Version string   `json:"version"`
	Field   string   `json:"field,omitempty"`   // the path, with [*] for indexes
	Reason  string   `json:"reason,omitempty"`  // of a refusal: the type of the error and its detail
	Message string   `json:"message,omitempty"` // of the first object
	Objects int64    `json:"objects"`
	Example []string `json:"examples,omitempty"` // namespace/name
}

type groupKey struct {
	effect                 Effects
	version, field, reason string
}

// Add counts an outcome.
func (s *Summary) Add(x *Outcome) {
	s.Objects++
	s.Versions.add(x.Version, 1)
	if x.RefusedAlready {
		s.Refused++
	}
	if x.Effects == 0 {
		return
	}
	s.Affected++
	if x.Effects&Breaking != 0 {
		s.Breaking++
	}
	if x.Effects&Loss != 0 {
		s.Losing++
	}
	for _, effect := range x.Effects.Each() {
		s.Counts.add(effect.String(), 1)
	}
	for _, name := range x.Managers {
		s.Managers.add(name, 1)
	}
	for _, owner := range x.Owners {
		kind, _, _ := strings.Cut(owner, "/")
		s.Owners.add(kind, 1)
	}
	s.group(x)
	if s.details += x.details(); len(s.Listed) < s.Most && s.details < maxDetails {
		s.Listed = append(s.Listed, *x)
	}
}

// group counts what happens to an object, each thing once.
func (s *Summary) group(x *Outcome) {
	seen := map[groupKey]bool{}
	add := func(effect Effects, field, reason, message string) {
		key := groupKey{effect, x.Version, indexless(field), indexless(reason)}
		if !seen[key] {
			seen[key] = true
			s.count(Group{Effect: effect, Version: x.Version, Field: key.field, Reason: key.reason, Message: message, Objects: 1, Example: []string{x.Path()}})
		}
	}
	paths := func(effect Effects, list []string) {
		for _, path := range list {
			add(effect, path, "", "")
		}
	}
	paths(LosesFields, x.Lost)
	paths(LosesInConversion, x.LostConverting)
	paths(NewDefaults, x.Defaulted)
	paths(KeepsFields, x.Kept)
	for _, r := range x.Update {
		add(RefusedOnUpdate, r.Field, r.Type+" "+r.Detail, r.Message)
	}
	for _, r := range x.Create {
		add(RefusedOnCreate, r.Field, r.Type+" "+r.Detail, r.Message)
	}
	for _, name := range x.DeadManagers {
		add(DeadManagers, "", name, name)
	}
	const explained = VersionGone | NotConvertible | Unreadable | NotServed | ConversionUnknown | ChangesValues | UnreadableToday
	for _, effect := range (x.Effects & explained).Each() {
		message := ""
		if effect&(VersionGone|NotServed) == 0 {
			message = x.Explanation
		}
		add(effect, "", "", message)
	}
}

func (s *Summary) count(g Group) {
	key := groupKey{g.Effect, g.Version, g.Field, g.Reason}
	if s.index == nil {
		s.index = make(map[groupKey]int)
	}
	i, ok := s.index[key]
	switch {
	case ok:
		s.Groups[i].merge(&g)
	case len(s.Groups) < maxGroups:
		s.index[key] = len(s.Groups)
		s.Groups = append(s.Groups, g)
	default:
		s.Omitted += g.Objects
	}
}

func (g *Group) merge(other *Group) {
	g.Objects += other.Objects
	if room := maxExamples - len(g.Example); room > 0 {
		g.Example = append(g.Example, other.Example[:min(room, len(other.Example))]...)
	}
}

// Merge adds what another summary has counted, which must not be used any more.
func (s *Summary) Merge(other *Summary) {
	s.Objects += other.Objects
	s.Affected += other.Affected
	s.Breaking += other.Breaking
	s.Losing += other.Losing
	s.Refused += other.Refused
	s.Omitted += other.Omitted
	for _, pair := range []struct {
		to   *Count
		from Count
	}{{&s.Counts, other.Counts}, {&s.Versions, other.Versions}, {&s.Managers, other.Managers}, {&s.Owners, other.Owners}} {
		for _, name := range pair.from.Sorted() {
			pair.to.add(name, pair.from[name])
		}
	}
	for _, g := range other.Groups {
		s.count(g)
	}
	s.Listed = append(s.Listed, other.Listed[:min(len(other.Listed), max(0, s.Most-len(s.Listed)))]...)
}

// Order sorts the groups: the most severe effects first, then the most objects.
func (s *Summary) Order() {
	slices.SortStableFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Effect, b.Effect), cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Field, b.Field))
	})
	s.index = nil
}

// details is how much an outcome says.
func (x *Outcome) details() int {
	return len(x.Lost) + len(x.LostConverting) + len(x.Defaulted) + len(x.Kept) + len(x.Create) + len(x.Update)
}

// Path is the name of the object, with its namespace.
func (x *Outcome) Path() string {
	if x.Namespace == "" {
		return x.Name
	}
	return x.Namespace + "/" + x.Name
}

// indexless replaces the indexes of a path by [*], so that the items of a list are one place.
func indexless(path string) string {
	at := strings.IndexByte(path, '[')
	if at < 0 {
		return path
	}
	var b strings.Builder
	for at >= 0 {
		b.WriteString(path[:at])
		path = path[at:]
		end := strings.IndexByte(path, ']')
		if end < 0 {
			break
		}
		if strings.Trim(path[1:end], "0123456789") == "" {
			b.WriteString("[*]")
		} else {
			b.WriteString(path[:end+1])
		}
		path = path[end+1:]
		at = strings.IndexByte(path, '[')
	}
	b.WriteString(path)
	return b.String()
}
