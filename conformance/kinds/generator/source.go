package generator

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
)

// A Source makes the choices for one object.
type Source struct {
	*rand.Rand
	// Unique is part of generated object names, so that objects of one run do not meet.
	Unique string
}

// NewSource returns the source of the object number index of a kind. It is the same for the same arguments.
func NewSource(seed uint64, kind string, index int) *Source {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind + "/" + strconv.Itoa(index)))
	return &Source{Rand: rand.New(rand.NewPCG(seed, h.Sum64())), Unique: strconv.Itoa(index)}
}

// Chance returns true in percent of 100 cases.
func (s *Source) Chance(percent int) bool { return s.IntN(100) < percent }

// pick returns one of the values.
func pick[T any](s *Source, values []T) T { return values[s.IntN(len(values))] }

// A Slot stands for a value that each server chooses: a UID, a resource version, a cluster IP. A request that contains it is sent with
// the value of the server that it goes to.
type Slot struct {
	What string // uid, resourceVersion, time, name, clusterIP, nodePort
	Path string // where it was found
}

// Fill returns a copy of value in which slots have their values. A slot without a value is removed from its object or list.
func Fill(value any, of func(Slot) (any, bool)) any {
	out, _ := fill(value, of)
	return out
}

func fill(value any, of func(Slot) (any, bool)) (any, bool) {
	switch v := value.(type) {
	case Slot:
		return of(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if f, ok := fill(e, of); ok {
				out[k] = f
			}
		}
		return out, true
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if f, ok := fill(e, of); ok {
				out = append(out, f)
			}
		}
		return out, true
	}
	return value, true
}

// Copy returns a deep copy.
func Copy(value any) any {
	return Fill(value, func(s Slot) (any, bool) { return s, true })
}
