package main

import (
	"fmt"
	"time"
)

// show prints the figures of one kind.
func (b *bench) show(k *kind) {
	fmt.Printf("\n%s, objects of %d bytes as sent\n", k.title, len(k.object(listed, object(0), 0)))
	fmt.Printf("  %-10s %-10s %10s %12s %10s %10s\n", "", "", "per s", "server CPU", "p50", "p99")
	for _, o := range operations {
		for _, s := range b.sides {
			if f := s.figures[o.name]; f != nil {
				fmt.Printf("  %-10s %-10s %10.1f %12v %10v %10v\n", o.name, s.name, f.rate(), round(f.cpu()), round(f.quantile(0.5)), round(f.quantile(0.99)))
			}
		}
	}
	for _, s := range b.sides {
		if s.server != nil {
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
