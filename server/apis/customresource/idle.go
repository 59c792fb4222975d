package customresource

import (
	"container/list"
	"sync"
)

// idleServings are those that nobody uses, the one that was used last in front.
type idleServings struct {
	mu   sync.Mutex // taken while a serving's own is held, never the other way round
	list list.List  // of *serving
}

// add puts a serving in front, and returns one that is too many, if any.
func (i *idleServings) add(s *serving, limit int) (surplus *serving) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.place = i.list.PushFront(s)
	if i.list.Len() <= limit {
		return nil
	}
	surplus = i.list.Remove(i.list.Back()).(*serving)
	surplus.place = nil
	return surplus
}

// remove takes a serving out, if it is there.
func (i *idleServings) remove(s *serving) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.place != nil {
		i.list.Remove(s.place)
		s.place = nil
	}
}
