package store

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// A Report has the objects that lists could not read. Readers that have one take it
// upon themselves that an object is there and cannot be read: their lists and watches
// do not fail because of any object.
type Report struct{ Unreadable []Unreadable }

type reportKey struct{}

// Reporting has lists with the context add to a report what they could not read.
// Watches without selectors have events for such objects: see UnreadableOf.
func Reporting(ctx context.Context) (context.Context, *Report) {
	r := &Report{}
	return context.WithValue(ctx, reportKey{}, r), r
}

func reportOf(ctx context.Context) *Report {
	r, _ := ctx.Value(reportKey{}).(*Report)
	return r
}

// UnreadableOf returns the object of an event, if it cannot be read: after an addition
// or a change it is in etcd and unreadable, after a deletion it is gone.
func UnreadableOf(event watch.Event) (_ Unreadable, ok bool) {
	m, ok := event.Object.(*missing)
	if !ok {
		return Unreadable{}, false
	}
	return m.at(), true
}

// reported is what the bufferedWatch does with events if the reader has a Report.
func (s *Spec) reported(b *Backend, event watch.Event) watch.Event {
	switch event.Type {
	case watch.Bookmark, watch.Error:
		return event
	}
	if event.Object == nil {
		// It was deleted while its value was empty, and the event does not say which
		// object that was: a list does.
		expired := apierrors.NewResourceExpired("an object has been deleted whose value was empty").ErrStatus
		return watch.Event{Type: watch.Error, Object: &expired}
	}
	if m, ok := event.Object.(*missing); ok {
		b.unreadable.follow(event.Type, m)
	} else if b.unreadable.any() && s.KeyFunc != nil {
		if key, err := s.KeyFunc(event.Object); err == nil {
			b.unreadable.forget(s.Resource, b.Key(key))
		}
	}
	return event
}

// follow notes or forgets an object by an event of a watch.
func (u *unreadables) follow(what watch.EventType, m *missing) {
	one := m.at()
	if what == watch.Deleted {
		u.forget(one.Resource, one.Key)
		return
	}
	u.note(&one)
}
