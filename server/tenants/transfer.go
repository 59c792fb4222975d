package tenants

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

const (
	// ExportSubresource is that of a tenant's object which sends an archive with everything in the tenant.
	ExportSubresource = "export"
	// ImportSubresource takes such an archive.
	ImportSubresource = "import"
)

const (
	// transfers is how many archives a replica sends and takes at a time: each takes some memory
	// for its largest objects, and time of etcd.
	transfers = 4
	// stall is how long a client may send nothing.
	stall = time.Minute
)

// TransferOptions are what a Transfer needs. All of them must be set, but Transformers.
type TransferOptions struct {
	Client dynamic.Interface
	Pool   *Pool
	Prefix string
	// Kinds are the built-in resources of tenants.
	Kinds func() ([]builtin.Archived, error)
	// Transformers decrypt and encrypt what etcd has; nil leaves it as it is.
	Transformers value.ResourceTransformers
	// Version is that of the server.
	Version string
}

// Transfer sends everything in a tenant as an archive, and makes a tenant of one.
type Transfer struct {
	registry
	options TransferOptions
	places  chan struct{}
}

// NewTransfer returns a Transfer.
func NewTransfer(o TransferOptions) *Transfer {
	return &Transfer{registry{o.Client.Resource(Resource), o.Pool.root.Client(), o.Pool, o.Prefix}, o, make(chan struct{}, transfers)}
}

// Handles reports whether a request is for an archive. Such requests may take hours.
func Handles(info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.APIGroup == Resource.Group && info.Resource == Resource.Resource &&
		(info.Subresource == ExportSubresource || info.Subresource == ImportSubresource)
}

// ServeHTTP answers a request that Handles is true of and that was authorized.
func (t *Transfer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !Handles(info) || info.APIVersion != Resource.Version || info.Namespace != "" || !valid(info.Name) {
		http.NotFound(w, req)
		return
	}
	serve := map[string]func(http.ResponseWriter, *http.Request, string) error{
		http.MethodGet + ExportSubresource: t.export, http.MethodPost + ImportSubresource: t.take,
	}[req.Method+info.Subresource]
	if serve == nil {
		reply.Error(w, req, apierrors.NewMethodNotSupported(Resource.GroupResource(), info.Verb))
		return
	}
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	default:
		reply.Error(w, req, apierrors.NewTooManyRequests("this replica sends or takes the archives of other tenants; please try again", 5))
		return
	}
	if err := serve(w, req, info.Name); err != nil {
		reply.Error(w, req, explainTransfer(info.Name, err))
	}
}

// explainTransfer is the error for a client.
func explainTransfer(name string, err error) error {
	if away, ok := errors.AsType[*AwayError](err); ok {
		return reply.Unavailable(away.Error())
	}
	if moving, ok := errors.AsType[*movingError](err); ok {
		return reply.Unavailable(moving.Error())
	}
	switch {
	case isGone(err):
		return apierrors.NewNotFound(Resource.GroupResource(), name)
	case errors.Is(err, errImporting):
		return conflict(name, err.Error())
	case apierrors.ReasonForError(err) != "":
		return err
	}
	return apierrors.NewInternalError(err)
}

// conflict is an error of the state that a tenant is in.
func conflict(name, why string) error {
	return apierrors.NewConflict(Resource.GroupResource(), name, errors.New(why))
}

// transformer decrypts and encrypts the objects of a resource.
func (t *Transfer) transformer(r schema.GroupResource) value.Transformer {
	if t.options.Transformers != nil {
		if found := t.options.Transformers.TransformerForResource(r); found != nil {
			return found
		}
	}
	return identity.NewEncryptCheckTransformer()
}

// resources are those that a tenant has, built-in and by its CRDs.
type resources struct {
	byFolder, byName map[string]*resourceInfo
}

// resourceInfo is one of them.
type resourceInfo struct {
	schema.GroupResource
	folder      string
	namespaced  bool
	expires     bool
	builtin     *builtin.Archived // nil if a CRD defines it
	kind        string            // of a CRD
	transformer value.Transformer
}

var crds = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// newResources has the built-in resources and CRDs.
func (t *Transfer) newResources() (*resources, error) {
	kinds, err := t.options.Kinds()
	if err != nil {
		return nil, err
	}
	all := &resources{map[string]*resourceInfo{}, map[string]*resourceInfo{}}
	for i := range kinds {
		k := &kinds[i]
		t.add(all, &resourceInfo{GroupResource: k.Resource, folder: k.Folder, namespaced: k.Namespaced, expires: k.Expires, builtin: k})
	}
	t.add(all, &resourceInfo{GroupResource: crds, folder: "/" + crds.Group + "/" + crds.Resource, kind: "CustomResourceDefinition"})
	return all, nil
}

// add adds a resource. It does nothing if there is one of its name.
func (t *Transfer) add(all *resources, r *resourceInfo) {
	if all.byName[r.String()] != nil || all.byFolder[r.folder] != nil {
		return
	}
	r.transformer = t.transformer(r.GroupResource)
	all.byName[r.String()], all.byFolder[r.folder] = r, r
}

// place is where an object is within the folder.
func (r *resourceInfo) place(namespace, name string) string {
	if r.namespaced {
		return namespace + "/" + name
	}
	return name
}
