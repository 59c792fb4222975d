package cli

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a run may take before its progress is shown.
const patience = time.Second

// show shows a line on standard error, again and again, until stop is called, which removes it. It shows nothing in the first
// second, and nothing if standard error is no terminal: logs of jobs have no bars.
func (a *App) show(line func() string) (stop func()) {
	if !IsTerminal(a.Err) {
		return func() {}
	}
	quit := make(chan struct{})
	var idle sync.WaitGroup
	idle.Go(func() {
		shown := false
		for wait := patience; ; wait = 100 * time.Millisecond {
			select {
			case <-quit:
				if shown {
					fmt.Fprint(a.Err, "\r\x1b[K")
				}
				return
			case <-time.After(wait):
				fmt.Fprint(a.Err, "\r"+line()+"\x1b[K")
				shown = true
			}
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		idle.Wait()
	})
}

// progress is how far a run is whose length is known.
type progress struct {
	done  atomic.Int64
	total int
	noun  string // what is counted, in the plural
	quit  func()
}

// progress starts showing how far a run is. The noun is what is counted, in the plural.
func (a *App) progress(total int, noun string) *progress {
	p := &progress{total: total, noun: noun}
	if total >= 2 {
		p.quit = a.show(p.line)
	}
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
		p.quit()
	}
}

// counter is how much was done of something whose length is not known.
type counter struct {
	objects, bytes atomic.Int64
	stop           func()
}

// count starts showing how much was done.
func (a *App) count(doing string) *counter {
	c := &counter{}
	c.stop = a.show(func() string { return doing + ": " + c.String() })
	return c
}

// String says how much was done.
func (c *counter) String() string {
	text := fmt.Sprintf("%.1f MiB", float64(c.bytes.Load())/(1<<20))
	if n := c.objects.Load(); n > 0 {
		text = fmt.Sprintf("%d objects, %s", n, text)
	}
	return text
}

// Write implements io.Writer. It counts bytes.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// waiting shows for how long something has been waited for.
func (a *App) waiting(doing string) (stop func()) {
	began := time.Now()
	return a.show(func() string { return fmt.Sprintf("%s: %v", doing, time.Since(began).Round(time.Second)) })
}
