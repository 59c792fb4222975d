package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// A side does the whole job once.
type side struct {
	name   string
	once   func() error
	n      int       // times per round
	rounds []float64 // ns per time
	allocs float64
}

// best is the round that the rest of the machine disturbed least. A median would do where noise is small; on shared
// cores it measures the neighbours.
func (s *side) best() float64 { return slices.Min(s.rounds) }

func normalize(set *corpus.Set, rounds int, batch time.Duration) error {
	list, err := subjects(set)
	if err != nil {
		return err
	}
	fmt.Printf("normalize, bytes to bytes, as a request, nothing recorded. %d rounds of %v for each side in turn, the best of each.\n", rounds, batch)
	fmt.Printf("%-34s %-9s %7s | %9s %7s %6s | %10s %7s %7s | %9s %7s %6s | %9s %9s\n", "", "", "", "ours", "", "", "upstream", "", "", "scan", "", "", "upstream", "ours")
	fmt.Printf("%-34s %-9s %7s | %9s %7s %6s | %10s %7s %7s | %9s %7s %6s | %9s %9s\n", "object", "form", "bytes", "ns/op", "MB/s", "allocs", "ns/op", "MB/s", "allocs", "ns/op", "MB/s", "allocs", "/ours", "/scan")
	rows, err := race(list, sidesOf, rounds, batch)
	if err != nil {
		return err
	}
	summarize("normalize", list, rows, func(s subject, ours, up, scan *side) {
		a, b, c := ours.best(), up.best(), scan.best()
		rate := func(ns float64) float64 { return float64(len(s.object)) / ns * 1e3 }
		fmt.Printf("%-34.34s %-9s %7d | %9.0f %7.1f %6.0f | %10.0f %7.1f %7.0f | %9.0f %7.1f %6.0f | %9.2f %9.2f\n", s.crd, s.form, len(s.object),
			a, rate(a), ours.allocs, b, rate(b), up.allocs, c, rate(c), scan.allocs, b/a, a/c)
	})
	return nil
}

// race measures what prepare makes of each subject: ours, upstream's and the scan.
func race(list []subject, prepare func(subject) ([]*side, error), rounds int, batch time.Duration) ([][]*side, error) {
	rows := make([][]*side, len(list))
	for i, s := range list {
		var err error
		if rows[i], err = prepare(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.crd, err)
		}
		for _, side := range rows[i] {
			if err := side.calibrate(batch); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.crd, side.name, err)
			}
		}
	}
	for round := range rounds { // every row in every round, so that a busy minute hits all of them
		for i, s := range list {
			if err := measure(rows[i], round); err != nil {
				return nil, fmt.Errorf("%s: %w", s.crd, err)
			}
		}
	}
	return rows, nil
}

// summarize prints a line for each subject and the geometric means, and records these.
func summarize(title string, list []subject, rows [][]*side, line func(s subject, ours, up, scan *side)) {
	var logUp, logScan, worst float64
	for i, s := range list {
		ours, up, scan := rows[i][0], rows[i][1], rows[i][2]
		logUp += math.Log(up.best() / ours.best())
		logScan += math.Log(ours.best() / scan.best())
		if s.form == "canonical" {
			worst = max(worst, ours.allocs)
		}
		line(s, ours, up, scan)
	}
	n := float64(len(list))
	figures.Set(title+".upstream/ours", "%.1f", math.Exp(logUp/n))
	figures.Set(title+".ours/scan", "%.1f", math.Exp(logScan/n))
	figures.Set(title+".allocations", "%.0f", worst)
	fmt.Printf("%s geomean: upstream/ours=%.2f ours/scan=%.2f allocs=%.0f\n\n", title, math.Exp(logUp/n), math.Exp(logScan/n), worst)
}

// sidesOf prepares the three sides and checks that the two engines agree on the object.
func sidesOf(s subject) ([]*side, error) {
	theirs, err := oracle.Compile(s.schema)
	if err != nil {
		return nil, err
	}
	ours, err := espalier.Compile(s.schema, espalier.CompileOptions{})
	if err != nil {
		return nil, err
	}
	res, err := ours.Normalize(s.object, espalier.NormalizeOptions{})
	if err != nil {
		return nil, err
	}
	want := theirs.Normalize(s.object, oracle.Request)
	if want.Err != nil || !bytes.Equal(res.Bytes, want.Bytes) {
		return nil, errors.New("the two sides do not agree on the result")
	}
	if s.form == "canonical" && !bytes.Equal(s.object, want.Bytes) {
		return nil, errors.New("the canonical form is not canonical")
	}
	var out bytes.Buffer
	return []*side{
		{name: "ours", once: func() error {
			_, err := ours.Normalize(s.object, espalier.NormalizeOptions{})
			return err
		}},
		{name: "upstream", once: func() error {
			out.Reset()
			return theirs.Encode(s.object, oracle.Request, &out)
		}},
		scan(s.object),
	}, nil
}

// scan reads an object as JSON tokens.
func scan(object []byte) *side {
	var in bytes.Buffer
	dec := jsontext.NewDecoder(&in)
	return &side{name: "scan", once: func() error {
		in = *bytes.NewBuffer(object) // a Buffer is read in place
		dec.Reset(&in)
		for {
			if _, err := dec.ReadToken(); err != nil {
				if err == io.EOF {
					return nil
				}
				return err
			}
		}
	}}
}

// measure gives each side a turn.
func measure(sides []*side, round int) error {
	for i := range sides {
		s := sides[(i+round)%len(sides)]
		began := time.Now()
		for range s.n {
			if err := s.once(); err != nil {
				return err
			}
		}
		s.rounds = append(s.rounds, float64(time.Since(began).Nanoseconds())/float64(s.n))
	}
	return nil
}

// calibrate finds how often the job fits into a batch, and counts allocations.
func (s *side) calibrate(batch time.Duration) error {
	for range 3 { // warm up: pools, caches
		if err := s.once(); err != nil {
			return err
		}
	}
	began := time.Now()
	n := 0
	for time.Since(began) < batch {
		if err := s.once(); err != nil {
			return err
		}
		n++
	}
	s.n = max(n, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	const times = 20
	if err := s.once(); err != nil { // pools belong to processors, and now there is one
		return err
	}
	runtime.ReadMemStats(&before)
	for range times {
		if err := s.once(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	s.allocs = float64((after.Mallocs - before.Mallocs) / times)
	return nil
}
