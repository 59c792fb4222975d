package openapihandler

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/discovery/grouped"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
)

// Handler answers requests to /openapi/v2, /openapi/v3 and what is below. It is
// safe for concurrent use.
type Handler struct {
	catalog *catalog.Catalog
	builtIn []BuiltIn
	at      string // the path of the server that it is part of
	static  func() (*static, error)
	index   *grouped.Index[[]versionHash]
	cache   cache
	flights flights
	slots   chan struct{}
}

// hash tells the contents of a document.
type hash [16]byte

func (h hash) String() string { return fmt.Sprintf("%X", h[:]) }

// versionHash is the hash of the document of a version of a group.
type versionHash struct {
	version string
	hash    hash
}

// New returns a handler for the resources in the catalog and the built-in ones.
func New(c *catalog.Catalog, builtIn ...BuiltIn) *Handler {
	h := &Handler{catalog: c, builtIn: builtIn, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	h.static = sync.OnceValues(func() (*static, error) { return newStatic(builtIn) })
	h.index = grouped.New(c, h.hashes)
	return h
}

// Within says that clients find the handler below a path of a server that another handler is
// for: documents name each other. What both know of the built-in resources, which must be
// the same, is shared. It returns the handler, and is called before the first request.
func (h *Handler) Within(other *Handler, path string) *Handler {
	h.at, h.static = path, other.static
	return h
}

// hashes returns the hashes of the versions of a group that are not built in.
func (h *Handler) hashes(group string, entries []*catalog.Entry) ([]versionHash, bool) {
	var list []versionHash
	s, err := h.static()
	if err != nil {
		return nil, false // requests fail before they need hashes
	}
	for _, v := range servedVersions(entries) {
		if units := h.units(s, group, v, entries); len(units) > 0 {
			list = append(list, versionHash{v, sumOf(group, v, units)})
		}
	}
	return list, len(list) > 0
}

// servedVersions lists the versions of a group that have resources, sorted.
func servedVersions(entries []*catalog.Entry) []string {
	var names []string
	for _, e := range entries {
		for i := range e.Versions {
			if e.Established && e.Versions[i].Served && !slices.Contains(names, e.Versions[i].Name) {
				names = append(names, e.Versions[i].Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// units returns the custom resources of a version of a group. It is none if
// the version is built in, or its models would have the names of others.
func (h *Handler) units(s *static, group, version string, entries []*catalog.Entry) []custom {
	if h.builtInAt(group, version) >= 0 || s.reserved[openapi.ModelName(group, version, "")] {
		return nil
	}
	var units []custom
	kinds := map[string]bool{}
	for _, e := range entries {
		v := e.Version(version)
		if !e.Established || v == nil || !v.Served {
			continue
		}
		// Accepted names are unique, unless an operator has written into etcd. Then the
		// first CRD gets the model.
		kind, list := e.Accepted.Kind, e.Accepted.ListKind
		if kind == "" || list == "" || kind == list || kinds[kind] || kinds[list] {
			continue
		}
		kinds[kind], kinds[list] = true, true
		units = append(units, custom{entry: e, versions: []*catalog.Version{v}})
	}
	return units
}

func (h *Handler) builtInAt(group, version string) int {
	return slices.IndexFunc(h.builtIn, func(b BuiltIn) bool { return b.Group == group && b.Version == version })
}

// sumOf is the hash of the custom resources of a version of a group.
func sumOf(group, version string, units []custom) hash {
	s := sha256.New()
	_, _ = fmt.Fprintf(s, "%s/%s\n", group, version) // never fails
	for _, u := range units {
		a := &u.entry.Accepted
		_, _ = fmt.Fprintf(s, "%s %s %s %t %x\n", a.Plural, a.Kind, a.ListKind, u.entry.PreserveUnknownFields, u.versions[0].Hash)
	}
	return hash(s.Sum(nil))
}

// seal makes a hash of hashes and of what all documents have in common.
func (s *static) seal(parts ...hash) hash {
	h := sha256.New()
	_, _ = h.Write(s.form[:]) // never fails
	for _, p := range parts {
		_, _ = h.Write(p[:])
	}
	return hash(h.Sum(nil))
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		reply.Fail(w, req, http.StatusMethodNotAllowed)
		return
	}
	if !h.catalog.HasSynced() {
		reply.Fail(w, req, http.StatusServiceUnavailable)
		return
	}
	static, err := h.static()
	if err != nil {
		reply.Error(w, req, apierrors.NewInternalError(err))
		return
	}
	parts := requestinfo.Segments(req.URL.Path)
	switch {
	case len(parts) < 2 || parts[0] != "openapi":
		reply.Fail(w, req, http.StatusNotFound)
	case len(parts) == 2 && parts[1] == "v3":
		h.serveIndex(w, req, static)
	case len(parts) == 2 && parts[1] == "v2":
		h.serveAll(w, req, static)
	case len(parts) == 4 && parts[1] == "v3" && parts[2] == "api":
		h.serveVersion(w, req, static, "", parts[3])
	case len(parts) == 5 && parts[1] == "v3" && parts[2] == "apis":
		h.serveVersion(w, req, static, parts[3], parts[4])
	default:
		reply.Fail(w, req, http.StatusNotFound)
	}
}

// documentPath is the path of the document of a version, below /openapi/v3.
func documentPath(group, version string) string {
	if group == "" {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

func (h *Handler) location(documentPath string, hash hash) string {
	u := url.URL{Path: h.at + "/openapi/v3/" + documentPath, RawQuery: "hash=" + hash.String()}
	return u.String()
}

// serveIndex answers /openapi/v3.
func (h *Handler) serveIndex(w http.ResponseWriter, req *http.Request, s *static) {
	current := h.index.Current()
	sum := s.sealAll(current)
	write := func(_ context.Context, out io.Writer) error {
		_, err := out.Write(h.encodeIndex(current, s))
		return err
	}
	h.respond(w, req, response{hash: sum, name: "index", contentType: "application/json", current: func() source { return source{sum, write} }})
}

func (h *Handler) encodeIndex(current *grouped.Snapshot[[]versionHash], s *static) []byte {
	data := []byte(`{"paths":{`)
	add := func(group, version string, hash hash) {
		if data[len(data)-1] == '}' {
			data = append(data, ',')
		}
		at := documentPath(group, version)
		data = append(jsondoc.AppendString(data, at), `:{"serverRelativeURL":`...)
		data = append(jsondoc.AppendString(data, h.location(at, hash)), '}')
	}
	for _, b := range h.builtIn {
		add(b.Group, b.Version, s.builtInHash(b.Group, b.Version))
	}
	for _, item := range current.Items {
		for _, v := range item.Value {
			add(item.Group, v.version, s.seal(v.hash))
		}
	}
	return append(data, "}}\n"...)
}

func (s *static) builtInHash(group, version string) hash {
	return s.seal(sumOf(group, version, nil))
}

// serveVersion answers /openapi/v3/apis/G/V.
func (h *Handler) serveVersion(w http.ResponseWriter, req *http.Request, s *static, group, version string) {
	d := &document{format: openapi.V3, slots: h.slots}
	var sum hash
	if i := h.builtInAt(group, version); i >= 0 {
		sum = s.builtInHash(group, version)
		d.units = []unit{fixed{h.builtIn[i].Resources, s.meta}.with(s.builtIn[i])}
	} else {
		units := h.units(s, group, version, h.catalog.Group(group))
		if len(units) == 0 {
			// The index of another replica may have listed the document.
			if h.catalog.CatchUp(req.Context()) != nil {
				reply.Fail(w, req, http.StatusServiceUnavailable)
				return
			}
			units = h.units(s, group, version, h.catalog.Group(group))
		}
		if len(units) == 0 {
			reply.Fail(w, req, http.StatusNotFound)
			return
		}
		sum = s.seal(sumOf(group, version, units))
		shared := fixed{models: s.meta}
		for _, u := range units {
			if u.versions[0].Scale {
				shared = shared.with(s.scale)
				break
			}
		}
		for _, u := range units {
			d.units = append(d.units, u)
		}
		d.units = append(d.units, shared)
	}
	contentType, write, ok := negotiate(w, req, d.format)
	if !ok {
		return
	}
	at := documentPath(group, version)
	r := response{hash: sum, name: at, contentType: contentType, current: func() source { return write.of(sum, d) }}
	if given := req.URL.Query().Get("hash"); given != "" {
		if given != sum.String() {
			setTag(w, sum)
			http.Redirect(w, req, h.location(at, sum), http.StatusMovedPermanently)
			return
		}
		r.immutable = true
	}
	h.respond(w, req, r)
}

// serveAll answers /openapi/v2. The hash is known without the document, which is
// built if it is not cached.
func (h *Handler) serveAll(w http.ResponseWriter, req *http.Request, s *static) {
	contentType, write, ok := negotiate(w, req, openapi.V2)
	if !ok {
		return
	}
	h.respond(w, req, response{hash: s.sealAll(h.index.Current()), name: "v2", contentType: contentType, moving: true, current: func() source {
		// The hash first: if CRDs change in between, the document is newer
		// than its hash, and is built again for the next request.
		sum := s.sealAll(h.index.Current())
		return write.of(sum, h.all(s))
	}})
}

// sealAll is the hash of all custom resources.
func (s *static) sealAll(all *grouped.Snapshot[[]versionHash]) hash {
	var hashes []hash
	for _, item := range all.Items {
		for _, v := range item.Value {
			hashes = append(hashes, v.hash)
		}
	}
	return s.seal(hashes...)
}

// all is the document of everything.
func (h *Handler) all(s *static) *document {
	first := fixed{models: s.meta}
	for i, b := range h.builtIn {
		first.resources = slices.Concat(first.resources, b.Resources)
		first = first.with(s.builtIn[i])
	}
	d := &document{format: openapi.V2, slots: h.slots}
	scale := false
	for _, group := range h.catalog.Groups() {
		entries := h.catalog.Group(group)
		merged := map[*catalog.Entry]int{}
		for _, version := range servedVersions(entries) {
			for _, u := range h.units(s, group, version, entries) {
				scale = scale || u.versions[0].Scale
				if i, ok := merged[u.entry]; ok { // to unpack it once
					whole := d.units[i].(custom)
					whole.versions = append(whole.versions, u.versions...)
					d.units[i] = whole
					continue
				}
				merged[u.entry] = len(d.units)
				d.units = append(d.units, u)
			}
		}
	}
	if scale {
		first = first.with(s.scale)
	}
	d.units = append(d.units, first)
	return d
}
