package catalog

import (
	"cmp"
	"fmt"
	"maps"
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

// Split returns the parts of the name. A plural has no dots.
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

// forget removes a CRD that was decoded, or deleted, at a revision.
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
	return slices.SortedFunc(maps.Values(u.known), func(a, b *Unreadable) int { return cmp.Compare(a.Name, b.Name) })
}

// Unknown returns the CRDs that cannot be decoded and that this process did not know
// before, by name. Their resources are unknown: that they are not in the catalog does
// not mean that they do not exist.
func (c *Catalog) Unknown() []*Unreadable {
	return slices.DeleteFunc(c.unread.all(), func(u *Unreadable) bool { return c.index.get(u.Name) != nil })
}

// UnknownResource returns the error for a resource whose CRD is in etcd and cannot be
// decoded; nil if its CRD is known or does not exist.
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

// broken handles a CRD that is in etcd and cannot be decoded. If the catalog has
// followed all changes up to this one, its entry is the CRD as it was before the damage.
// The entry stays and takes the new revision, so that objects can be read and written
// as before. After a list there may have been a change in between that other replicas
// have acknowledged. Then the entry may be outdated, and is not served.
func (c *Catalog) broken(u *Unreadable, followed bool) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.unread.set(u)
	old := c.index.get(u.Name)
	switch {
	case old == nil:
		klog.ErrorS(nil, "Failed to decode a CRD, answering requests for its objects with 503", "name", u.Name, "revision", u.Revision, "reason", u.Reason)
	case old.Revision >= u.Revision: // known already
	case followed:
		klog.ErrorS(nil, "Failed to decode a changed CRD, serving its objects by the former one until this process ends", "name", u.Name, "revision", u.Revision, "reason", u.Reason)
		kept := *old
		kept.Revision, kept.ResourceVersion = u.Revision, strconv.FormatUint(u.Revision, 10)
		c.change(old, &kept)
	default:
		klog.ErrorS(nil, "Failed to decode a CRD that may have changed before, answering requests for its objects with 503", "name", u.Name, "revision", u.Revision, "reason", u.Reason)
		c.change(old, nil)
	}
}

// ofStore is a CRD that the storage could not read.
func ofStore(u *store.Unreadable) *Unreadable {
	return &Unreadable{Name: u.Name, Revision: uint64(u.Revision), Reason: u.Reason, Removal: u.Removal()}
}
