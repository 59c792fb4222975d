package publish

import (
	"container/list"
	"sync"
)

// The limits of the cache, in bytes of compressed documents.
const (
	cacheSize    = 4 << 20
	cacheLargest = cacheSize / 4
)

// cache keeps the documents that were asked for last, compressed.
type cache struct {
	mu    sync.Mutex
	size  int
	order list.List // of *kept, the last used first
	byKey map[string]*list.Element
}

type kept struct {
	key  string
	data []byte
}

func (c *cache) get(key string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept).data
}

func (c *cache) put(key string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(data) > cacheLargest || c.byKey[key] != nil {
		return
	}
	if c.byKey == nil {
		c.byKey = map[string]*list.Element{}
	}
	c.byKey[key] = c.order.PushFront(&kept{key, data})
	c.size += len(data)
	for c.size > cacheSize {
		last := c.order.Remove(c.order.Back()).(*kept)
		delete(c.byKey, last.key)
		c.size -= len(last.data)
	}
}

// capped remembers what is written to it, up to a limit.
type capped struct {
	data []byte
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	if c.over = c.over || len(c.data)+len(p) > cacheLargest; c.over {
		c.data = nil
	} else {
		c.data = append(c.data, p...)
	}
	return len(p), nil
}
