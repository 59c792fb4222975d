package catalog

import "github.com/espalier-dev/espalier/internal/object"

// A Loan says whose an entry is that a catalog was lent. The entry is served like any other. Its
// CRD is not among the objects that the catalog reads.
type Loan struct {
	// Key is that of the CRD in etcd; empty if the CRD is built in and is nowhere stored.
	Key string
	// From is the catalog that has read the CRD; nil if the CRD is built in.
	From *Catalog
	// Note is the key of what says that the CRD is lent, and NoteRevision its revision. A CRD that is
	// lent again is lent with another one.
	Note         string
	NoteRevision int64
}

// Lent returns the entry as another catalog shows it. What it has packed exists once.
func (e *Entry) Lent(l *Loan) *Entry {
	lent := *e
	lent.Loan = l
	return &lent
}

// Lend shows an entry of another catalog, or a later state of it. It returns false if the catalog
// has a CRD of its own with this name: that one stays.
func (c *Catalog) Lend(e *Entry) bool {
	c.telling.Lock()
	defer c.telling.Unlock()
	old := c.index.get(e.Name)
	switch {
	case old != nil && old.Loan == nil:
		return false
	case old != nil && (old.UID != e.UID || old.Loan.NoteRevision != e.Loan.NoteRevision):
		c.change(old, nil)
		old = nil
	case old != nil && old.Revision >= e.Revision && old.Deleting == e.Deleting:
		return true
	}
	c.change(old, e)
	return true
}

// Withdraw takes back what was lent under a name.
func (c *Catalog) Withdraw(name string) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if old := c.index.get(name); old != nil && old.Loan != nil {
		c.change(old, nil)
	}
}

// Fixed returns the entry of a CRD that is built in, from its JSON with the status of one that is
// established. Every catalog is lent the same one.
func Fixed(o *object.Object) (*Entry, error) {
	e, err := newEntry(o)
	if err != nil {
		return nil, err
	}
	return e.Lent(&Loan{}), nil
}
