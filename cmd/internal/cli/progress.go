package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a run may take before its progress is shown.
const patience = time.Second

// progress shows on a terminal how far a run is.
type progress struct {
	done  atomic.Int64
	total int
	noun  string // what is counted, in the plural
	quit  chan struct{}
	idle  sync.WaitGroup
}

// progress starts showing progress, if standard error is a terminal. The noun is what is counted, in the plural.
func (a *App) progress(total int, noun string) *progress {
	p := &progress{total: total, noun: noun}
	if f, ok := a.Err.(*os.File); !ok || !IsTerminal(f) || total < 2 {
		return p
	}
	p.quit = make(chan struct{})
	p.idle.Go(func() {
		shown := false
		for wait := patience; ; wait = 100 * time.Millisecond {
			select {
			case <-p.quit:
				if shown {
					fmt.Fprint(a.Err, "\r\x1b[K")
				}
				return
			case <-time.After(wait):
				fmt.Fprint(a.Err, "\r"+p.line()+"\x1b[K")
				shown = true
			}
		}
	})
	return p
}

func (p *progress) line() string {
	const width = 30
	done := min(int(p.done.Load()), p.total)
	full := done * width / p.total
	return fmt.Sprintf("%s%s %d/%d %s", strings.Repeat("█", full), strings.Repeat("░", width-full), done, p.total, p.noun)
}

func (p *progress) add(n int) { p.done.Add(int64(n)) }

// stop removes the bar.
func (p *progress) stop() {
	if p.quit != nil {
		close(p.quit)
		p.idle.Wait()
	}
}
