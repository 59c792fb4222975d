package customresource

import (
	"container/list"
	"sync"
)

// idleResources are the resources without requests, the most recently used first.
type idleResources struct {
	mu   sync.Mutex // locked while a servedResource's mutex is held, never the other way round
	list list.List  // of *servedResource
}

// add puts a resource in front. It returns the last one if there are too many.
func (i *idleResources) add(s *servedResource, limit int) (surplus *servedResource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s.idleElement = i.list.PushFront(s)
	if i.list.Len() <= limit {
		return nil
	}
	surplus = i.list.Remove(i.list.Back()).(*servedResource)
	surplus.idleElement = nil
	return surplus
}

// remove takes a resource out of the list, if it is in it.
func (i *idleResources) remove(s *servedResource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.idleElement != nil {
		i.list.Remove(s.idleElement)
		s.idleElement = nil
	}
}
