package discovery

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apidiscoverybeta "k8s.io/api/apidiscovery/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/discovery/grouped"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
)

// fragment is what the documents about all groups say of one.
type fragment struct {
	name       string
	priority   int
	versions   []string
	aggregated []byte // JSON; all other fields are parts of it
	sum        [sha256.Size]byte
}

func newFragment(g *Group) *fragment {
	f := &fragment{name: g.Name, priority: g.Priority, versions: g.names(), aggregated: encode(g.aggregated())}
	f.sum = sha256.Sum256(f.aggregated)
	return f
}

// encode encodes values of types that always have a JSON form.
func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("discovery: %T: %v", value, err))
	}
	return data
}

// Handler answers discovery requests to /api, /apis and the paths below. It is safe for
// concurrent use.
type Handler struct {
	catalog *catalog.Catalog
	builtIn []Group
	fixed   func() fixed
	index   *grouped.Index[*fragment]
	all     atomic.Pointer[listing]
}

// fixed is what there is of the built-in groups: the one without a name, and the others. It is made for
// the first request: most tenants have none in most of their starts.
type fixed struct {
	core   *listing
	groups []*fragment
}

// listing is the fragments of the documents about all groups, in order.
type listing struct {
	of        *grouped.Snapshot[*fragment]
	fragments []*fragment
	etag      string
}

// New returns a handler for the resources in the catalog and the built-in
// groups. The group without a name is the one at /api.
func New(c *catalog.Catalog, builtIn ...Group) *Handler {
	h := &Handler{catalog: c, builtIn: builtIn}
	h.fixed = sync.OnceValue(func() (f fixed) {
		var core []*fragment
		for i := range builtIn {
			switch one := newFragment(&builtIn[i]); {
			case len(one.versions) == 0: // the group is left out
			case one.name == "":
				core = append(core, one)
			default:
				f.groups = append(f.groups, one)
			}
		}
		f.core = newListing(nil, core)
		return f
	})
	h.index = grouped.New(c, h.fragment)
	return h
}

// group returns a group with all its versions, built-in ones and those of the
// catalog's entries, or false if it has none.
func (h *Handler) group(name string, entries []*catalog.Entry) (Group, bool) {
	g := Group{Name: name, Priority: customPriority}
	if b := h.builtInGroup(name); b != nil {
		g = *b
	}
	if custom := customVersions(entries, g.Versions); len(custom) > 0 {
		g.Priority = max(g.Priority, customPriority)
		g.Versions = slices.Concat(g.Versions, custom)
		slices.SortStableFunc(g.Versions, func(a, b Version) int { return version.CompareKubeAwareVersionStrings(b.Name, a.Name) })
	}
	return g, len(g.Versions) > 0
}

func (h *Handler) builtInGroup(name string) *Group {
	i := slices.IndexFunc(h.builtIn, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &h.builtIn[i]
}

func (h *Handler) fragment(name string, entries []*catalog.Entry) (*fragment, bool) {
	g, ok := h.group(name, entries)
	if !ok {
		return nil, false
	}
	return newFragment(&g), true
}

// listing returns the fragments of all groups but the one without a name.
func (h *Handler) listing() *listing {
	current := h.index.Current()
	if l := h.all.Load(); l != nil && l.of == current {
		return l
	}
	fixed := h.fixed().groups
	fragments := make([]*fragment, 0, len(current.Items)+len(fixed))
	for _, item := range current.Items {
		fragments = append(fragments, item.Value)
	}
	for _, f := range fixed {
		if _, ok := current.Find(f.name); !ok {
			fragments = append(fragments, f)
		}
	}
	l := newListing(current, fragments)
	h.all.Store(l)
	return l
}

func newListing(of *grouped.Snapshot[*fragment], fragments []*fragment) *listing {
	slices.SortFunc(fragments, func(a, b *fragment) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
	h := sha256.New()
	for _, f := range fragments {
		_, _ = h.Write(f.sum[:]) // never fails
	}
	return &listing{of: of, fragments: fragments, etag: etag(h.Sum(nil))}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		reply.Fail(w, req, http.StatusMethodNotAllowed)
		return
	}
	parts := requestinfo.Segments(req.URL.Path)
	switch {
	case parts == nil:
		reply.Fail(w, req, http.StatusNotFound)
	case len(parts) == 1 && parts[0] == "api":
		h.serveCore(w, req)
	case len(parts) == 2 && parts[0] == "api":
		h.serveVersion(w, req, "", parts[1])
	case parts[0] != "apis" || len(parts) > 3:
		reply.Fail(w, req, http.StatusNotFound)
	case len(parts) == 3:
		h.serveVersion(w, req, parts[1], parts[2])
	case !h.catalog.HasSynced():
		reply.Fail(w, req, http.StatusServiceUnavailable)
	case len(parts) == 2:
		h.serveGroup(w, req, parts[1])
	default:
		h.serveGroups(w, req)
	}
}

// serveCore answers /api. Clients request it to find out whether the core group exists;
// if it does not, that is no error.
func (h *Handler) serveCore(w http.ResponseWriter, req *http.Request) {
	versions := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{}}
	if g := h.builtInGroup(""); g != nil {
		for _, v := range g.Versions {
			versions.Versions = append(versions.Versions, v.Name)
		}
	}
	if kind := aggregatedKind(req); kind != nil {
		aggregatedDocument(h.fixed().core, kind.Version).serve(w, req)
		return
	}
	small(versions, func() runtime.Object { return &metav1.APIVersions{} }).serve(w, req)
}

// serveGroups answers /apis.
func (h *Handler) serveGroups(w http.ResponseWriter, req *http.Request) {
	all := h.listing()
	if kind := aggregatedKind(req); kind != nil {
		aggregatedDocument(all, kind.Version).serve(w, req)
		return
	}
	d := document{empty: func() runtime.Object { return &metav1.APIGroupList{} }, etag: all.etag}
	d.append(`{`, `"kind":"APIGroupList","apiVersion":"v1","groups":[`)
	for i, f := range all.fragments {
		d.item(i, encode(apiGroup(f.name, f.versions)))
	}
	d.append("]}\n")
	d.serve(w, req)
}

func aggregatedDocument(all *listing, version string) *document {
	d := &document{empty: func() runtime.Object { return &apidiscovery.APIGroupDiscoveryList{} }, etag: all.etag, aggregated: true}
	if version == apidiscoverybeta.SchemeGroupVersion.Version {
		d.empty = func() runtime.Object { return &apidiscoverybeta.APIGroupDiscoveryList{} }
	}
	d.append(`{`, `"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/`+version+`","metadata":{},"items":[`)
	for i, f := range all.fragments {
		d.item(i, f.aggregated)
	}
	d.append("]}\n")
	return d
}

// serveGroup answers /apis/G.
func (h *Handler) serveGroup(w http.ResponseWriter, req *http.Request, name string) {
	g, ok := h.group(name, h.catalog.Group(name))
	if !ok {
		// Another replica may have told the client that the group exists.
		if h.catalog.CatchUp(req.Context()) != nil {
			reply.Fail(w, req, http.StatusServiceUnavailable)
			return
		}
		g, ok = h.group(name, h.catalog.Group(name))
	}
	if !ok {
		h.absent(w, req, name)
		return
	}
	out := apiGroup(name, g.names())
	out.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	small(out, func() runtime.Object { return &metav1.APIGroup{} }).serve(w, req)
}

// serveVersion answers /apis/G/V. Built-in versions do not wait for the catalog.
func (h *Handler) serveVersion(w http.ResponseWriter, req *http.Request, group, name string) {
	var v *Version
	if g := h.builtInGroup(group); g != nil {
		v = g.version(name)
	}
	if v == nil {
		if !h.catalog.HasSynced() {
			reply.Fail(w, req, http.StatusServiceUnavailable)
			return
		}
		v = h.version(group, name)
	}
	if v == nil {
		if h.catalog.CatchUp(req.Context()) != nil {
			reply.Fail(w, req, http.StatusServiceUnavailable)
			return
		}
		v = h.version(group, name)
	}
	if v == nil {
		h.absent(w, req, group)
		return
	}
	small(v.list(group), func() runtime.Object { return &metav1.APIResourceList{} }).serve(w, req)
}

// absent answers that a group or version does not exist. If a CRD of the group cannot be
// decoded, that is unknown, and a 404 would make clients take its objects for deleted.
func (h *Handler) absent(w http.ResponseWriter, req *http.Request, group string) {
	if unknown := h.catalog.UnknownGroup(group); unknown != nil {
		reply.Error(w, req, apierrors.NewServiceUnavailable(unknown.Error()))
		return
	}
	reply.Fail(w, req, http.StatusNotFound)
}

// version returns a version of a group, or nil.
func (h *Handler) version(group, name string) *Version {
	g, ok := h.group(group, h.catalog.Group(group))
	if !ok {
		return nil
	}
	return g.version(name)
}

// small is a document that is made for a request.
func small(value any, empty func() runtime.Object) *document {
	data := encode(value)
	sum := sha256.Sum256(data)
	return &document{empty: empty, etag: etag(sum[:]), parts: [][]byte{data, []byte("\n")}}
}

// etag is the entity tag of what has a sum.
func etag(sum []byte) string { return fmt.Sprintf(`"%X"`, sum[:sha256.Size/2]) }

// document is a document in JSON, in parts that are shared with others.
type document struct {
	parts      [][]byte
	etag       string
	aggregated bool
	empty      func() runtime.Object // to decode into, for encodings other than JSON
}

func (d *document) append(texts ...string) {
	for _, t := range texts {
		d.parts = append(d.parts, []byte(t))
	}
}

var comma = []byte(",")

func (d *document) item(i int, data []byte) {
	if i > 0 {
		d.parts = append(d.parts, comma)
	}
	d.parts = append(d.parts, data)
}

// decoded returns the document as the types of the API.
func (d *document) decoded() (runtime.Object, error) {
	o := d.empty()
	return o, json.Unmarshal(bytes.Join(d.parts, nil), o)
}
