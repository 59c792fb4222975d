package customresource

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/catalog"
)

// errGone says that a serving has been given up, and another is to be made.
var errGone = errors.New("given up")

// serving is what serves one definition, from when it is first asked for until
// the definition is deleted or nobody has asked for a while.
type serving struct {
	server  *Server
	uid     apitypes.UID              // of the definition
	schemas atomic.Pointer[schemaSet] // of the newest view; all forms follow it
	// retiring is what changes of the CRD have made wrong and is not closed yet.
	retiring pending

	mu       sync.Mutex // held while a definition is read: others wait who ask for the same resource
	current  *view
	gone     bool
	users    int // requests and watches under way
	lastUsed time.Time

	place *list.Element // among the idle; theirs to guard
}

// enter returns the view for a request, which has to leave it. The view is at
// least as new as the entry.
func (s *serving) enter(e *catalog.Entry, long bool) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, errGone
	}
	if err := s.adopt(e); err != nil {
		return nil, err
	}
	if s.users++; s.users == 1 {
		s.server.idle.remove(s)
	}
	if !long {
		s.current.users++
	}
	return s.current, nil
}

// leave ends what enter began.
func (s *serving) leave(v *view, long bool) {
	if surplus := s.left(v, long); surplus != nil {
		s.server.giveUp(surplus, time.Now())
	}
}

// left is leave but for what has to be done without mu: to give up another
// serving that is one too many.
func (s *serving) left(v *view, long bool) (surplus *serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.lastUsed = time.Now()
	if s.users == 0 && !s.gone {
		surplus = s.server.idle.add(s, s.server.options.MaxIdle)
	}
	if long {
		return surplus
	}
	if v.users--; v.users == 0 && v.replaced != nil {
		go v.replaced()
	}
	return surplus
}

// adopt makes a view of a newer entry the current one. The caller holds mu.
func (s *serving) adopt(e *catalog.Entry) error {
	before := s.current
	if before != nil && before.entry.Revision >= e.Revision {
		return nil
	}
	v, err := s.newView(e, before)
	if err != nil {
		return err
	}
	s.current = v
	s.schemas.Store(&v.schemas)
	if before == nil {
		return nil
	}
	var orphans []*vault
	for name, vt := range before.vaults {
		switch {
		case v.vaults[name] != vt:
			orphans = append(orphans, vt)
		case v.schemas[name] != before.schemas[name]:
			end := s.retiring.begin()
			go func() {
				defer end()
				vt.renew()
			}()
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	before.retire(&s.retiring, orphans)
	return nil
}

// follow adopts a change before somebody asks for it.
func (s *serving) follow(e *catalog.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.current == nil {
		return nil
	}
	err := s.adopt(e)
	if err != nil {
		s.retire() // watches would go on with what the CRD does not say any more
	}
	return err
}

// retireTime is how long requests that have begun may go on with what a change of the
// CRD has made wrong. Watches end with it, without what they have not sent yet, and the
// acknowledgement of the change waits for that. A request that takes longer is told to
// try again where it reads, and is refused by its requirement where it writes.
const retireTime = 500 * time.Millisecond

// retire closes what only this view uses, once requests that have begun are finished.
func (v *view) retire(retiring *pending, orphans []*vault) {
	end := retiring.begin()
	v.replaced = sync.OnceFunc(func() {
		defer end()
		var closing sync.WaitGroup
		for _, vt := range orphans {
			closing.Go(vt.close)
		}
		closing.Wait()
	})
	if v.users == 0 {
		go v.replaced()
	} else {
		time.AfterFunc(retireTime, v.replaced)
	}
}

// settle returns when all is closed that has been replaced so far, and watches that go
// on have nothing more to write by former schemas.
func (s *serving) settle() {
	_ = s.retiring.wait(context.Background()) // retireTime and endTime bound it
}

// newView reads a definition. What is the same as in the view before is kept.
func (s *serving) newView(e *catalog.Entry, before *view) (*view, error) {
	if err := checkNames(e); err != nil {
		return nil, err
	}
	d, err := e.Definition()
	if err != nil {
		return nil, err
	}
	defer d.Release()
	if err := d.Decodable(); err != nil {
		return nil, fmt.Errorf("CRD %s: %w", e.Name, err)
	}
	v := &view{
		server: s.server, entry: e, details: newDetails(d), requirement: s.server.requirement(e),
		schemas: schemaSet{}, vaults: map[string]*vault{}, versions: map[string]*lazyVersion{},
	}
	if before != nil {
		maps.Copy(v.schemas, before.schemas) // versions that are gone may be in use, by a watch say
	}
	for i := range e.Versions {
		v.schemas[e.Versions[i].Name] = versionSchemaOf(e, &e.Versions[i], before)
	}
	kind := schema.GroupKind{Group: e.Group, Kind: e.Accepted.Kind}
	v.convert, err = s.server.converterOf(d, &Form{kind: kind.WithVersion(e.StorageVersion), schemas: &s.schemas})
	if err != nil {
		return nil, err
	}
	for i := range e.Versions {
		version := &e.Versions[i]
		if !version.Served && !version.Storage {
			continue
		}
		v.versions[version.Name] = &lazyVersion{}
		if before != nil && before.vaults[version.Name] != nil && before.vaults[version.Name].key == vaultKeyOf(e, version) {
			v.vaults[version.Name] = before.vaults[version.Name]
			continue
		}
		form := &Form{kind: kind.WithVersion(version.Name), schemas: &s.schemas}
		v.vaults[version.Name] = newVault(&s.server.options, e, version, form, v.convert)
	}
	return v, nil
}

// versionSchemaOf returns the schema that the view before has, if it is the
// same: objects that went through it need not do so again.
func versionSchemaOf(e *catalog.Entry, v *catalog.Version, before *view) *versionSchema {
	key := schemaKey{hash: v.SchemaHash, preserve: e.PreserveUnknownFields}
	if before != nil {
		if old := before.schemas[v.Name]; old != nil && old.key == key {
			return old
		}
	}
	return newVersionSchema(key, e, v.Name)
}

// checkNames makes sure that a definition has been accepted.
func checkNames(e *catalog.Entry) error {
	a := &e.Accepted
	switch {
	case a.Plural == "" || a.Singular == "":
		return errors.New("the server could not properly serve the resource")
	case a.Kind == "":
		return errors.New("the server could not properly serve the kind")
	case a.ListKind == "":
		return errors.New("the server could not properly serve the list kind")
	}
	return nil
}

// close gives the serving up. Requests that have begun are finished first.
func (s *serving) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire()
}

// closeIfIdle gives the serving up if nobody has used it for a while, and says
// whether it did.
func (s *serving) closeIfIdle(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.users > 0 || s.lastUsed.After(since) {
		return s.gone
	}
	s.retire()
	return true
}

// retire is close for who holds mu.
func (s *serving) retire() {
	if s.gone {
		return
	}
	s.gone = true
	s.server.idle.remove(s)
	v := s.current
	if v == nil {
		return
	}
	v.retire(&s.retiring, slices.Collect(maps.Values(v.vaults)))
}
