package openapihandler

import (
	"container/list"
	"sync"
	"time"
)

// The limits of the cache, in bytes of compressed documents, and how long a document
// is kept without requests. The document of 500 CRDs of 46 KB has 2 MB.
const (
	cacheSize    = 32 << 20
	cacheLargest = cacheSize / 2
	cacheTime    = 10 * time.Minute
)

// cache keeps the documents that were asked for last, compressed, each in the
// form that it had last.
type cache struct {
	mu     sync.Mutex
	size   int
	order  list.List // of *kept, the last used first
	byName map[string]*list.Element
	timer  *time.Timer // nil while the cache is empty
}

type kept struct {
	name string
	rendered
	used time.Time
}

// get returns a document if it still has this hash.
func (c *cache) get(name string, h hash) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byName[name]
	if e == nil || e.Value.(*kept).hash != h {
		return nil
	}
	c.order.MoveToFront(e)
	k := e.Value.(*kept)
	k.used = time.Now()
	return k.data
}

// put keeps a document in place of what was kept under its name.
func (c *cache) put(name string, h hash, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.byName[name]; old != nil {
		c.remove(old)
	}
	if len(data) > cacheLargest {
		return
	}
	if c.byName == nil {
		c.byName = map[string]*list.Element{}
	}
	c.byName[name] = c.order.PushFront(&kept{name, rendered{h, data}, time.Now()})
	c.size += len(data)
	for c.size > cacheSize {
		c.remove(c.order.Back())
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(cacheTime, c.sweep)
	}
}

func (c *cache) remove(e *list.Element) {
	k := c.order.Remove(e).(*kept)
	delete(c.byName, k.name)
	c.size -= len(k.data)
}

// sweep drops documents that were not requested lately.
func (c *cache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Back(); e != nil && time.Since(e.Value.(*kept).used) >= cacheTime; e = c.order.Back() {
		c.remove(e)
	}
	if c.timer = nil; c.order.Len() > 0 {
		c.timer = time.AfterFunc(cacheTime, c.sweep)
	}
}
