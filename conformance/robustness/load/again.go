package load

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// arrive waits until the log has ended. Kine's watch may never show the mark: what it lacks is then read again.
func (l *etcdLog) arrive(ctx context.Context) error {
	waiting, stop := ctx, func() {}
	if l.environment.Engine.Kine() {
		waiting, stop = context.WithTimeout(ctx, calm)
	}
	defer stop()
	for !l.ended() && waiting.Err() == nil {
		launch.Pause(ctx, logPause)
	}
	if ctx.Err() != nil {
		return errors.New("etcd's own log did not arrive")
	}
	if !l.environment.Engine.Kine() {
		return nil
	}
	return l.again(ctx)
}

// again reads the log once more from its beginning, or from where it is compacted, and adds what the watch of the run has
// not shown. Kine answers a watch of the past out of its database. A watch that goes on has only what kine has polled, and
// the record of a run must not lack what that lacks.
func (l *etcdLog) again(ctx context.Context) error {
	all := &etcdLog{environment: l.environment, mark: l.mark}
	all.follow(ctx, l.from)
	for all.compacted > 0 {
		all = &etcdLog{environment: l.environment, mark: l.mark, from: all.compacted + 1}
		all.follow(ctx, all.from)
	}
	if all.err != nil {
		return all.err
	}
	if !all.end {
		return errors.New("kine's log did not arrive")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed = lacking(l.list, all.list, all.last)
	l.list = append(l.list, l.missed...)
	slices.SortFunc(l.list, func(a, b history.Write) int { return cmp.Compare(a.Revision, b.Revision) })
	l.end = true
	return nil
}

// lacking returns which writes of all were not shown. What comes after the last revision is not of the run.
func lacking(shown, all []history.Write, last int64) []history.Write {
	known := map[int64]bool{}
	for i := range shown {
		known[shown[i].Revision] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(w history.Write) bool { return known[w.Revision] || w.Revision > last })
}
