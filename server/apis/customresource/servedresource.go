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

// errGone says that a servedResource is closed. The caller makes another one.
var errGone = errors.New("resource is closed")

// servedResource serves the objects of one CRD, from the first request until the CRD
// is deleted or the resource was idle for a while.
type servedResource struct {
	server  *Server
	uid     apitypes.UID              // of the CRD
	schemas atomic.Pointer[schemaSet] // of the newest crdInfo; all decoders use it
	// retiring is the storage that changes of the CRD have replaced and that is not closed yet.
	retiring pending

	mu       sync.Mutex // held while a CRD is read: requests to the same resource wait
	current  *crdInfo
	gone     bool
	users    int // requests and watches under way
	lastUsed time.Time

	idleElement *list.Element // in idleResources, whose mutex guards it
}

// enter returns the crdInfo for a request, at least as new as the entry. The request
// must call leave.
func (s *servedResource) enter(e *catalog.Entry, long bool) (*crdInfo, error) {
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
func (s *servedResource) leave(v *crdInfo, long bool) {
	if surplus := s.left(v, long); surplus != nil {
		s.server.giveUp(surplus, time.Now())
	}
}

// left does the part of leave that needs mu. It returns another resource that is one
// idle resource too many; the caller closes it without holding mu.
func (s *servedResource) left(v *crdInfo, long bool) (surplus *servedResource) {
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

// adopt makes a crdInfo of a newer entry the current one. The caller holds mu.
func (s *servedResource) adopt(e *catalog.Entry) error {
	before := s.current
	if before != nil && before.entry.Revision >= e.Revision {
		return nil
	}
	v, err := s.newCRDInfo(e, before)
	if err != nil {
		return err
	}
	s.current = v
	s.schemas.Store(&v.schemas)
	if before == nil {
		return nil
	}
	var orphans []*versionStorage
	for name, vt := range before.storages {
		switch {
		case v.storages[name] != vt:
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

// follow adopts a change without waiting for the next request.
func (s *servedResource) follow(e *catalog.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.current == nil {
		return nil
	}
	err := s.adopt(e)
	if err != nil {
		s.retire() // otherwise watches would go on with the old CRD
	}
	return err
}

// retireTime is how long requests that have begun may use the storage that a change of
// the CRD has replaced. Then watches end, without their unsent events, and the server
// acknowledges the change. A read that takes longer gets an error that says to retry; a
// write fails by its requirement.
const retireTime = 500 * time.Millisecond

// retire closes what only this crdInfo uses, once requests that have begun are finished.
func (v *crdInfo) retire(retiring *pending, orphans []*versionStorage) {
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

// settle returns when all storage replaced so far is closed, and the remaining watches
// have no events of former schemas left to write.
func (s *servedResource) settle() {
	_ = s.retiring.wait(context.Background()) // retireTime and endTime bound it
}

// newCRDInfo reads a CRD. It reuses the unchanged parts of the crdInfo before.
func (s *servedResource) newCRDInfo(e *catalog.Entry, before *crdInfo) (*crdInfo, error) {
	if err := checkNames(e); err != nil {
		return nil, err
	}
	d, err := e.CRD()
	if err != nil {
		return nil, err
	}
	defer d.Release()
	if err := d.Decodable(); err != nil {
		return nil, fmt.Errorf("CRD %s: %w", e.Name, err)
	}
	v := &crdInfo{
		server: s.server, entry: e, details: newDetails(d), requirement: s.server.requirement(e),
		schemas: schemaSet{}, storages: map[string]*versionStorage{}, versions: map[string]*lazyVersion{},
	}
	if before != nil {
		maps.Copy(v.schemas, before.schemas) // versions that are gone may be in use, by a watch say
	}
	for i := range e.Versions {
		v.schemas[e.Versions[i].Name] = versionSchemaOf(e, &e.Versions[i], before)
	}
	kind := schema.GroupKind{Group: e.Group, Kind: e.Accepted.Kind}
	rules := false
	v.convert, rules, err = s.server.converterOf(d, &Decoder{kind: kind.WithVersion(e.StorageVersion), schemas: &s.schemas})
	if err != nil {
		return nil, err
	}
	if rules {
		v.convertible = newConvertible(e, v.convert)
	}
	for i := range e.Versions {
		version := &e.Versions[i]
		if !version.Served && !version.Storage {
			continue
		}
		v.versions[version.Name] = &lazyVersion{}
		if before != nil && before.storages[version.Name] != nil && before.storages[version.Name].key == storageKeyOf(e, version) {
			v.storages[version.Name] = before.storages[version.Name]
			continue
		}
		decoder := &Decoder{kind: kind.WithVersion(version.Name), schemas: &s.schemas}
		v.storages[version.Name] = newVersionStorage(&s.server.options, e, version, v.details.versions[version.Name].indexes, decoder, v.convert)
	}
	return v, nil
}

// versionSchemaOf returns the schema that the crdInfo before has, if it is the
// same: objects that went through it need not do so again.
func versionSchemaOf(e *catalog.Entry, v *catalog.Version, before *crdInfo) *versionSchema {
	key := schemaKey{hash: v.SchemaHash, preserve: e.PreserveUnknownFields}
	if before != nil {
		if old := before.schemas[v.Name]; old != nil && old.key == key {
			return old
		}
	}
	return newVersionSchema(key, e, v.Name)
}

// checkNames makes sure that a CRD has been accepted.
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

// close closes the resource, after the requests that have begun or retireTime.
func (s *servedResource) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire()
}

// closeIfIdle closes the resource if it was not used since a time. It reports whether
// the resource is closed.
func (s *servedResource) closeIfIdle(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.users > 0 || s.lastUsed.After(since) {
		return s.gone
	}
	s.retire()
	return true
}

// retire is close for callers that hold mu.
func (s *servedResource) retire() {
	if s.gone {
		return
	}
	s.gone = true
	s.server.idle.remove(s)
	v := s.current
	if v == nil {
		return
	}
	v.retire(&s.retiring, slices.Collect(maps.Values(v.storages)))
}
