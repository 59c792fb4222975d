package faults

// outside runs functions in a goroutine of its own that belongs to no bubble of
// testing/synctest. A goroutine in a bubble that waits for it is not durably blocked, so
// that the clock of the bubble stands still.
type outside struct {
	jobs chan func()
	done chan struct{}
}

// newOutside must not be called in a bubble: its channels would belong to it.
func newOutside() *outside {
	o := &outside{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		for job := range o.jobs {
			job()
			o.done <- struct{}{}
		}
	}()
	return o
}

// run runs a function and returns when it has returned. Only one goroutine may call it.
func (o *outside) run(job func()) {
	o.jobs <- job
	<-o.done
}

func (o *outside) stop() { close(o.jobs) }
