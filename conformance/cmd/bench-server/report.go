package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/results"
)

// show prints the figures of one kind.
func (b *bench) show(k *kind) {
	fmt.Printf("\n%s, objects of %d bytes as sent\n", k.title, len(k.object(listed, object(0), 0)))
	fmt.Printf("  %-10s %-10s %10s %12s %10s %10s\n", "", "", "per s", "server CPU", "p50", "p99")
	for _, o := range operations {
		for _, s := range b.sides {
			if f := s.figures[o.name]; f != nil {
				figures.Set(fmt.Sprintf("%s.%s.%s.rate", k.plural, o.name, s.name), "%s", results.Rate(f.rate()))
				figures.Set(fmt.Sprintf("%s.%s.%s.cpu", k.plural, o.name, s.name), "%s", results.Time(f.cpu()))
				fmt.Printf("  %-10s %-10s %10.1f %12v %10v %10v\n", o.name, s.name, f.rate(), round(f.cpu()), round(f.quantile(0.5)), round(f.quantile(0.99)))
			}
		}
	}
	for _, s := range b.sides {
		if s.server != nil {
			figures.Set(fmt.Sprintf("%s.heap.%s", k.plural, s.name), "%.1f KB", float64(s.memory.heap)/1e3/float64(s.objects))
			fmt.Printf("  memory     %-10s live heap for %d objects %.1f MB (%.2f KB each), %d MB resident after they were written and listed (%.1f MB of JSON)\n",
				s.name, s.objects, float64(s.memory.heap)/1e6, float64(s.memory.heap)/1e3/float64(s.objects), s.memory.resident>>20, float64(s.memory.size)/1e6)
		}
	}
}

func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

// ratios is the line that the run ends with: ours through upstream's, then ours through etcd's. Above one is faster; heap is upstream's
// through ours, so that above one is smaller. What was not measured is a dash.
func (b *bench) ratios() string {
	by := map[string]*side{}
	for _, s := range b.sides {
		by[s.name] = s
	}
	rate := func(side, operation string) float64 {
		if s := by[side]; s != nil && s.figures[operation] != nil {
			return s.figures[operation].rate()
		}
		return 0
	}
	against := func(format, other, operation string) string {
		return ratio(format, rate(ours, operation), rate(other, operation))
	}
	heap := "-"
	if by[ours] != nil && by[upstream] != nil {
		heap = ratio("%.1f", float64(by[upstream].memory.heap), float64(by[ours].memory.heap))
	}
	if by[ours] != nil && by[before] != nil {
		cpu := func(operation string) string {
			now, then := by[ours].figures[operation], by[before].figures[operation]
			if now == nil || then == nil {
				return "-"
			}
			return ratio("%.3f", float64(now.cpu()), float64(then.cpu()))
		}
		var parts []string
		for _, o := range operations {
			parts = append(parts, fmt.Sprintf("%s %s cpu %s", o.name, against("%.3f", before, o.name), cpu(o.name)))
		}
		return "before: rates and CPU per operation through those of the program before: " + strings.Join(parts, " | ")
	}
	if by[ours] != nil && by[plain] != nil {
		return fmt.Sprintf("plane: of the rates without roles, admission, priority and fairness: create %s | get %s | update %s | list%dk %s | watchlist %s",
			against("%.2f", plain, "create"), against("%.2f", plain, "get"), against("%.2f", plain, "update"), b.objects/1000, against("%.2f", plain, "list"), against("%.2f", plain, "watchlist"))
	}
	return fmt.Sprintf("server: create upstream %s etcd %s | get %s %s | update %s | list%dk %s | watchlist %s | heap/object %s",
		against("%.1f", upstream, "create"), against("%.2f", bare, "create"),
		against("%.1f", upstream, "get"), against("%.2f", bare, "get"),
		against("%.1f", upstream, "update"), b.objects/1000, against("%.1f", upstream, "list"), against("%.1f", upstream, "watchlist"), heap)
}

func ratio(format string, a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf(format, a/b)
}
