package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// A station has cores that work on one visit each, in the order of their arrival.
type station struct {
	free floats // when each core has nothing to do any more
	busy float64
}

func newStation(cores int) *station { return &station{free: make(floats, cores)} }

// serve returns when a visit that arrives now is over.
func (s *station) serve(now, work float64) float64 {
	end := max(now, s.free[0]) + work
	s.free[0] = end
	heap.Fix(&s.free, 0)
	s.busy += work
	return end
}

// use is which part of the time the cores have worked.
func (s *station) use(duration float64) float64 { return s.busy / duration / float64(len(s.free)) }

type floats []float64

func (f floats) Len() int           { return len(f) }
func (f floats) Less(i, j int) bool { return f[i] < f[j] }
func (f floats) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *floats) Push(x any)        { *f = append(*f, x.(float64)) }
func (f *floats) Pop() any          { panic("no core goes away") }

// A visit is how long a request needs a station for.
type visit struct {
	at   *station
	work float64
}

// A journey is a request on its way from station to station.
type journey struct {
	began, now float64
	visits     []visit
	then       func(end float64) // when it is over; nil for none
}

type journeys []*journey

func (j journeys) Len() int           { return len(j) }
func (j journeys) Less(a, b int) bool { return j[a].now < j[b].now }
func (j journeys) Swap(a, b int)      { j[a], j[b] = j[b], j[a] }
func (j *journeys) Push(x any)        { *j = append(*j, x.(*journey)) }
func (j *journeys) Pop() any {
	last := len(*j) - 1
	one := (*j)[last]
	*j = (*j)[:last]
	return one
}

// A simulation moves requests on, in the order of time.
type simulation struct {
	under journeys
	took  []float64
	rand  *rand.Rand
}

func newSimulation() *simulation { return &simulation{rand: rand.New(rand.NewPCG(1, 2))} }

// add has a request begin.
func (s *simulation) add(at float64, visits []visit, then func(end float64)) {
	heap.Push(&s.under, &journey{began: at, now: at, visits: visits, then: then})
}

// next moves the request on whose turn it is, and reports whether there was one.
func (s *simulation) next() bool {
	if len(s.under) == 0 {
		return false
	}
	j := s.under[0]
	if len(j.visits) == 0 {
		heap.Pop(&s.under)
		s.took = append(s.took, j.now-j.began)
		if j.then != nil {
			j.then(j.now)
		}
		return true
	}
	j.now = j.visits[0].at.serve(j.now, j.visits[0].work*s.rand.ExpFloat64())
	j.visits = j.visits[1:]
	heap.Fix(&s.under, 0)
	return true
}

// percentile is the time that p of 100 requests took at most.
func (s *simulation) percentile(p int) float64 {
	if len(s.took) == 0 {
		return 0
	}
	slices.Sort(s.took)
	return s.took[len(s.took)*p/100]
}
