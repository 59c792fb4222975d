package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// Unreadable is a CRD that is in etcd and cannot be read. Its name is known, by its
// key, and so are group and plural.
type Unreadable struct {
	Name     string // plural.group
	Revision uint64
	Reason   string
	// Removal is a command that deletes the CRD without its objects; empty if the CRD
	// can be deleted as others are.
	Removal string
}

// Split returns what the name is made of. A plural has no dots.
func (u *Unreadable) Split() (plural, group string) {
	plural, group, _ = strings.Cut(u.Name, ".")
	return plural, group
}

// Error implements error.
func (u *Unreadable) Error() string {
	text := fmt.Sprintf("the CustomResourceDefinition %s is in etcd and cannot be read, so nothing is known about its objects: %s. Repair it in etcd, or write it again", u.Name, u.Reason)
	if u.Removal != "" {
		text += "; to write it again, remove it first, which keeps its objects, with: " + u.Removal
	}
	return text
}

// unreadables are the CRDs that cannot be read, by name. Nearly always there are none.
type unreadables struct {
	mu    sync.RWMutex
	known map[string]*Unreadable
}

func (u *unreadables) get(name string) *Unreadable {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.known[name]
}

func (u *unreadables) set(one *Unreadable) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = map[string]*Unreadable{}
	}
	u.known[one.Name] = one
}

// forget is for a CRD that has been read, or is gone, at a revision.
func (u *unreadables) forget(name string, at uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.known[name]; one != nil && one.Revision <= at {
		delete(u.known, name)
	}
}

// all returns them by name.
func (u *unreadables) all() []*Unreadable {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if len(u.known) == 0 {
		return nil
	}
	list := make([]*Unreadable, 0, len(u.known))
	for _, one := range u.known {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *Unreadable) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Unknown returns the CRDs that cannot be read and that this process does not know
// from before, by name. What their resources are, nobody can say: that they are not in
// the catalog does not mean that they do not exist.
func (c *Catalog) Unknown() []*Unreadable {
	return slices.DeleteFunc(c.unread.all(), func(u *Unreadable) bool { return c.index.get(u.Name) != nil })
}

// UnknownResource returns why nothing is known about a resource whose CRD is in etcd;
// nil if its CRD is known, or there is none.
func (c *Catalog) UnknownResource(group, plural string) *Unreadable {
	name := plural + "." + group
	u := c.unread.get(name)
	if u == nil || c.index.get(name) != nil {
		return nil
	}
	return u
}

// UnknownGroup is UnknownResource for any resource of a group.
func (c *Catalog) UnknownGroup(group string) *Unreadable {
	for _, u := range c.Unknown() {
		if _, of := u.Split(); of == group {
			return u
		}
	}
	return nil
}

// broken is for a CRD that is in etcd and cannot be read. If the catalog has followed
// all changes up to this one, the entry before is what the CRD was until somebody
// damaged it: it stays, and takes the revision, so that objects can be read and
// written as before. After a list there may have been a change in between that other
// replicas have acknowledged: nothing is served by an entry that may be replaced.
func (c *Catalog) broken(u *Unreadable, followed bool) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.unread.set(u)
	old := c.index.get(u.Name)
	switch {
	case old == nil:
		klog.ErrorS(nil, "CRD cannot be read, requests for its objects are answered with 503", "name", u.Name, "revision", u.Revision, "reason", u.Reason)
	case old.Revision >= u.Revision: // known already
	case followed:
		klog.ErrorS(nil, "CRD cannot be read any more; serving its objects as before until this process ends", "name", u.Name, "revision", u.Revision, "reason", u.Reason)
		kept := *old
		kept.Revision, kept.ResourceVersion = u.Revision, strconv.FormatUint(u.Revision, 10)
		c.change(old, &kept)
	default:
		klog.ErrorS(nil, "CRD cannot be read and may have changed before; requests for its objects are answered with 503", "name", u.Name, "revision", u.Revision, "reason", u.Reason)
		c.change(old, nil)
	}
}

// ofStore is a CRD that the storage could not read.
func ofStore(u *store.Unreadable) *Unreadable {
	return &Unreadable{Name: u.Name, Revision: uint64(u.Revision), Reason: u.Reason, Removal: u.Removal()}
}
