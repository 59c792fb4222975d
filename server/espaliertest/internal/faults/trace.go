package faults

import (
	"fmt"
	"strings"
	"time"
)

// A line is one event on the wire.
type line struct {
	at    time.Duration // since the beginning, by the clock of the clients
	who   string        // a request's verb, or the name of a watch
	what  string        // resource and object
	then  string        // what came of it
	fault Kind
}

// trace is what has happened on the wire.
type trace struct{ lines []line }

// order is the trace without times.
func (t *trace) order() string {
	var b strings.Builder
	for i, l := range t.lines {
		l.print(&b, i)
		b.WriteByte('\n')
	}
	return b.String()
}

// tail is the end of the trace, for people.
func (t *trace) tail(n int) string {
	var b strings.Builder
	first := max(0, len(t.lines)-n)
	if first > 0 {
		fmt.Fprintf(&b, "  … %d earlier\n", first)
	}
	for i, l := range t.lines[first:] {
		fmt.Fprintf(&b, "  %9.3fs ", l.at.Seconds())
		l.print(&b, first+i)
		b.WriteByte('\n')
	}
	return b.String()
}

func (l line) print(b *strings.Builder, i int) {
	fmt.Fprintf(b, "%4d %-9s %-44s %s", i+1, l.who, l.what, l.then)
	if l.fault != "" {
		fmt.Fprintf(b, "   [%s]", l.fault)
	}
}
