package requestinfo

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// factory knows where the API begins: groups are below /apis, the group without a
// name is /api.
var factory = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// maxParts are a resource, a name and a subresource.
const maxParts = 3

// proxy is the subresource below which a path belongs to what the request is passed on to.
const proxy = "proxy"

// Resolver implements request.RequestInfoResolver. It never fails.
//
// A path that could be read in two ways is not a resource's: it has an empty
// segment, an encoded slash, something below a subresource other than proxy, or the prefix proxy/,
// or watch/ without a resource. Such a request is one for a path. The authorizer
// decides by nonResourceURLs, and the answer is 404. One slash at the end means
// nothing.
//
// It costs three scans of the path more than k8s.io/apiserver's own, and allocates
// nothing for them.
type Resolver struct{}

var _ request.RequestInfoResolver = Resolver{}

// NewRequestInfo implements request.RequestInfoResolver.
func (Resolver) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	if ambiguous(req.URL) {
		return pathInfo(req), nil
	}
	info, err := factory.NewRequestInfo(req)
	if err != nil || len(info.Parts) > maxParts && info.Subresource != proxy || info.Verb == "proxy" {
		return pathInfo(req), nil
	}
	if !info.IsResourceRequest && underAPI(info.Path) {
		// The documents of discovery and OpenAPI are served with and without a slash
		// at the end: one name for one document. The slash of /apis/ stays: a rule for
		// /apis/* is about it, and not about /apis, as in kube-apiserver.
		info.Path = strings.TrimSuffix(info.Path, "/")
	}
	return info, nil
}

// pathInfo is of a request that is not for a resource.
func pathInfo(req *http.Request) *request.RequestInfo {
	return &request.RequestInfo{Path: req.URL.Path, Verb: strings.ToLower(req.Method)}
}

// ambiguous reports whether the segments of a path are not certain.
func ambiguous(u *url.URL) bool {
	// RawPath is empty unless the path is encoded in a way that matters.
	return strings.Contains(u.Path, "//") || strings.Contains(u.RawPath, "%2F") || strings.Contains(u.RawPath, "%2f")
}

// underAPI reports whether a path is below one of the roots of documents.
func underAPI(path string) bool {
	for _, root := range []string{"/api/", "/apis/", "/openapi/"} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			return rest != ""
		}
	}
	return false
}

// Segments returns the segments of a path, nil if one of them is empty. One slash
// at the end means nothing.
func Segments(path string) []string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" || path[0] == '/' || path[len(path)-1] == '/' || strings.Contains(path, "//") {
		return nil
	}
	return strings.Split(path, "/")
}

// InScope reports whether the path of a request fits a resource. Resources without
// namespaces are not found through a namespace. Namespaced ones are not found without,
// except that lists and watches cover all namespaces.
func InScope(info *request.RequestInfo, namespaced bool) bool {
	if namespaced == (info.Namespace != "") {
		return true
	}
	return namespaced && (info.Verb == "list" || info.Verb == "watch")
}

// Check returns the error for a request whose verb does not fit its path: objects
// are created in a collection and changed by name. It also refuses namespaces and
// names that no key can have.
func Check(info *request.RequestInfo, method string) error {
	possible := true
	switch info.Verb {
	case "create":
		possible = info.Name == "" || info.Subresource != ""
	case "update", "patch", "delete":
		possible = info.Name != ""
	case "watch": // any method may have the prefix watch/
		possible = method == http.MethodGet || method == http.MethodHead
	}
	if !possible {
		return apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb)
	}
	if err := checkSegment("Namespace", info.Namespace); err != nil {
		return err
	}
	return checkSegment("Name", info.Name)
}

// checkSegment has k8s.io/apiserver's text for names, which stores check in most
// cases only, and namespaces, which they do not check.
func checkSegment(what, segment string) error {
	problems := content.IsPathSegmentName(segment)
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s parameter invalid: %q: %s", what, segment, strings.Join(problems, ";")))
}
