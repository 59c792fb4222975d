package customresource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	purgePage    = 500
	purgeWorkers = 8
)

// DeleteInstances deletes all objects of a CRD, in all namespaces, and returns how
// many are left. Objects with finalizers stay until their controllers remove the
// finalizers. If a deletion fails, the others go on; the errors are joined.
//
// Objects that cannot be decoded stay, and the error names them: their finalizers
// are unknown, and they would reappear if the CRD were created again. The CRD stays
// until an operator has repaired or removed these objects. In this case upstream
// deletes no instance at all.
func (s *Server) DeleteInstances(ctx context.Context, e *catalog.Entry) (remaining int, err error) {
	servedResource, v, err := s.enter(e, false)
	if err != nil {
		return 0, err
	}
	defer servedResource.leave(v, false)
	version, err := v.version(v.entry.StorageVersion)
	if err != nil {
		return 0, err
	}
	ctx = store.Require(ctx, v.requirement)
	p := purge{store: version.store}
	options := &internalversion.ListOptions{Limit: purgePage}
	for {
		list, err := version.store.List(ctx, options)
		if err != nil {
			return int(p.left.Load()), &crdcontroller.ListError{Err: errors.Join(p.err(), err)}
		}
		page, ok := list.(*object.List)
		if !ok {
			return 0, fmt.Errorf("a list of type %T where bytes were expected", list)
		}
		if err := p.page(ctx, page); err != nil {
			return int(p.left.Load()), errors.Join(p.err(), err)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return s.unread(ctx, e, &p)
		}
	}
}

// unread adds the objects that cannot be decoded to the number that is left. A list
// omits them, so only the keys in etcd prove that nothing is left. Otherwise these
// objects would outlive their CRD.
func (s *Server) unread(ctx context.Context, e *catalog.Entry, p *purge) (remaining int, err error) {
	resource := schema.GroupResource{Group: e.Group, Resource: e.Names.Plural}
	folder := "/" + resource.Group + "/" + resource.Resource
	unread, err := s.options.Backend.UnreadableError(ctx, resource, folder)
	err = errors.Join(p.err(), err)
	known := int(p.left.Load()) + unread
	keys, countErr := s.options.Backend.CountKeys(ctx, folder)
	if countErr != nil {
		return known, errors.Join(err, countErr)
	}
	if keys > known {
		err = errors.Join(err, fmt.Errorf("%d objects are in etcd and in no list. Find them with: etcdctl get --prefix --keys-only %s/. "+
			"Repair or remove them as \"An object that cannot be read\" in docs/guides/production.md says", keys-known, s.options.Backend.Key(folder)))
	}
	return keys, err
}

// purge deletes objects and counts those that stay.
type purge struct {
	store *genericregistry.Store
	left  atomic.Int64

	mu       sync.Mutex
	failures int
	first    error
}

// page deletes the objects of a page. It fails only if the context ends.
func (p *purge) page(ctx context.Context, page *object.List) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(purgeWorkers)
	for i := range page.Items {
		group.Go(func() error {
			p.delete(inner, &page.Items[i])
			return inner.Err()
		})
	}
	return group.Wait()
}

func (p *purge) delete(ctx context.Context, o *object.Object) {
	ctx = request.WithNamespace(ctx, o.GetNamespace())
	_, deleted, err := p.store.Delete(ctx, o.GetName(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		p.left.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.failures++; p.first == nil {
			p.first = err
		}
	case !deleted:
		p.left.Add(1)
	}
}

func (p *purge) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures == 0 {
		return nil
	}
	return fmt.Errorf("%d objects could not be deleted, the first because: %w", p.failures, p.first)
}
