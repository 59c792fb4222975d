package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// A request is one of a client that waits for its answer.
type request struct {
	method string
	host   *url.URL // scheme and host
	path   string
	query  url.Values
	header http.Header
	body   []byte

	verb      string // as RBAC has it; empty if it is not about a resource
	resource  resource
	namespace string
	name      string
	created   string // the name, or its beginning, of an object to create
	part      string // the subresource

	rt     http.RoundTripper // of the client, with its credentials
	steady bool              // no faults
	key    string            // the same for requests that do the same
	nth    string            // of this key
	answer chan answer

	notBefore time.Time       // is the time of its answer
	done      <-chan struct{} // of the client's context
	cause     func() error    // why that is done
}

// A resource is one version of one.
type resource struct{ group, version, name string }

// collection is the path of all objects of a resource, or of those of a namespace.
func (r resource) collection(namespace string) string {
	path := "/apis/" + r.group + "/" + r.version
	if r.group == "" {
		path = "/api/" + r.version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.name
}

func (r resource) String() string {
	if r.group == "" {
		return r.name
	}
	return r.name + "." + r.group
}

// An answer is what a client gets: a response, or an error of the connection.
type answer struct {
	code   int
	header http.Header
	body   io.ReadCloser
	err    error
}

// read takes a request apart. It reads the body.
func read(r *http.Request) (*request, error) {
	q := &request{
		method: r.Method, host: &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host}, path: r.URL.Path, query: r.URL.Query(), header: r.Header.Clone(),
		answer: make(chan answer, 1), done: r.Context().Done(), cause: r.Context().Err,
	}
	if r.Body != nil {
		var err error
		if q.body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("reading the body of a request failed: %w", err)
		}
		_ = r.Body.Close()
	}
	q.plain()
	q.parse()
	q.key = strings.Join([]string{q.word(), q.resource.String(), q.resource.version, q.namespace, q.name, q.created, q.part, q.query.Get("labelSelector"), q.query.Get("fieldSelector"), strconv.FormatBool(q.query.Has("continue"))}, " ")
	return q, nil
}

// plain has a body of protobuf, which typed clients send, be JSON, which we read.
// The server takes both alike.
func (q *request) plain() {
	if !strings.HasPrefix(q.header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		return
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(q.body, nil, nil)
	if err != nil {
		return // the server says why
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	if body, err := json.Marshal(object); err == nil {
		q.body = body
		q.header.Set("Content-Type", runtime.ContentTypeJSON)
	}
}

// word is the verb, or method and path if the request is not about a resource.
func (q *request) word() string {
	if q.verb == "" {
		return q.method + " " + q.path
	}
	return q.verb
}

// parse finds out what the request is about.
func (q *request) parse() {
	parts := strings.Split(strings.Trim(q.path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		q.resource.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		q.resource.group, q.resource.version, parts = parts[1], parts[2], parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.resource.name = parts[0]
	if len(parts) > 1 {
		q.name = parts[1]
	}
	q.part = strings.Join(parts[min(2, len(parts)):], "/")
	watch := q.query.Get("watch")
	switch q.method {
	case http.MethodGet:
		switch {
		case watch == "true" || watch == "1":
			q.verb = "watch"
		case q.name == "":
			q.verb = "list"
		default:
			q.verb = "get"
		}
	case http.MethodPost:
		q.verb = "create"
		var body struct {
			Metadata struct{ Name, GenerateName string }
		}
		_ = json.Unmarshal(q.body, &body) // what is not JSON is not told apart
		q.created = cmp.Or(q.name, body.Metadata.Name, body.Metadata.GenerateName)
	case http.MethodPut:
		q.verb = "update"
	case http.MethodPatch:
		q.verb = "patch"
	case http.MethodDelete:
		q.verb = "delete"
		if q.name == "" {
			q.verb = "deletecollection"
		}
	}
}

// looks names what an informer looks at, if the request can be one of an informer.
func (q *request) looks() string {
	if q.verb == "watch" || q.verb == "list" && q.query.Has("resourceVersion") {
		return strings.Join([]string{q.resource.String(), q.resource.version, q.namespace, q.name, q.query.Get("labelSelector"), q.query.Get("fieldSelector")}, " ")
	}
	return ""
}

// writes reports whether the request can change something.
func (q *request) writes() bool {
	return q.verb != "" && q.method != http.MethodGet && len(q.query["dryRun"]) == 0 && !bytes.Contains(q.body, []byte(`"dryRun"`))
}

// conditional reports whether the request depends on the version of an object.
func (q *request) conditional() bool {
	if q.verb != "update" && q.verb != "patch" && q.verb != "delete" {
		return false
	}
	var body struct {
		Metadata      struct{ ResourceVersion string }
		Preconditions struct{ ResourceVersion string }
	}
	return json.Unmarshal(q.body, &body) == nil && body.Metadata.ResourceVersion+body.Preconditions.ResourceVersion != ""
}

// acceptJSON has the server answer in JSON, which is what we read, if the client
// takes it, and reports whether it does.
func (q *request) acceptJSON() bool {
	var kept []string
	for _, one := range strings.Split(strings.Join(q.header.Values("Accept"), ","), ",") {
		media, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		switch strings.TrimSpace(media) {
		case "application/json":
			kept = append(kept, strings.TrimSpace(one))
		case "*/*", "application/*", "":
			kept = append(kept, "application/json")
		}
	}
	if len(kept) == 0 {
		return false
	}
	q.header.Set("Accept", strings.Join(slices.Compact(kept), ","))
	return true
}

// partial reports whether the client wants the metadata of objects only.
func (q *request) partial() bool { return q.wants("PartialObjectMetadata") }

// table reports whether the client wants objects as rows.
func (q *request) table() bool { return q.wants("Table") }

func (q *request) wants(form string) bool {
	first, _, _ := strings.Cut(q.header.Get("Accept"), ",")
	return strings.Contains(first, "as="+form)
}

// shown names the object of the request.
func (q *request) shown() string {
	s := cmp.Or(q.name, q.created)
	if q.namespace != "" {
		s = q.namespace + "/" + s
	}
	if q.part != "" {
		s += " (" + q.part + ")"
	}
	return strings.TrimSuffix(s, "/")
}
