package customresource

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// The parameters of lists that are sorted by a declared index. No standard client sends them.
const (
	sortByParameter     = "sortBy"     // an index as it is declared, with - before it to begin with the last value
	sortFromParameter   = "sortFrom"   // leave out lesser values
	sortBeforeParameter = "sortBefore" // leave out this value and greater ones
)

// withSort has a list be sorted if the request asks for that.
func (s *Server) withSort(req *http.Request, info *request.RequestInfo, indexes []store.Index) (*http.Request, error) {
	if !strings.Contains(req.URL.RawQuery, "sort") {
		return req, nil
	}
	query := req.URL.Query()
	if query.Has(sortByParameter) && info.Verb != "list" {
		return req, apierrors.NewBadRequest(sortByParameter + " sorts lists only; send the request without it")
	}
	sort, err := readSort(query, indexes)
	switch {
	case err != nil:
		return req, apierrors.NewBadRequest(err.Error())
	case sort == nil:
		return req, nil
	case s.options.Uncached:
		return req, apierrors.NewBadRequest(sortByParameter + " needs watch caches, which this server runs without: start it without --watch-cache=false")
	}
	return req.WithContext(store.WithSort(req.Context(), sort)), nil
}

// readSort returns nil if a query does not ask for a sorted list.
func readSort(query url.Values, indexes []store.Index) (*store.Sort, error) {
	for _, name := range []string{sortByParameter, sortFromParameter, sortBeforeParameter} {
		if len(query[name]) > 1 {
			return nil, fmt.Errorf("%s is given %d times; give it once", name, len(query[name]))
		}
	}
	if !query.Has(sortByParameter) {
		if query.Has(sortFromParameter) || query.Has(sortBeforeParameter) {
			return nil, fmt.Errorf("%s and %s need %s, such as %s=field:spec.priority", sortFromParameter, sortBeforeParameter, sortByParameter, sortByParameter)
		}
		return nil, nil
	}
	name, descending := strings.CutPrefix(query.Get(sortByParameter), "-")
	var declared []string
	sort := &store.Sort{Descending: descending}
	for _, one := range indexes {
		if _, array := one.Array(); array {
			continue // an object has many places in it
		}
		if declared = append(declared, catalog.Index(one).String()); declared[len(declared)-1] == name {
			sort.Index = one
		}
	}
	if !slices.Contains(declared, name) {
		return nil, fmt.Errorf("%s=%q is no index that lists of this version can be sorted by (there are: %s). Declare it in the annotation %s of the CRD, such as %q",
			sortByParameter, name, orNone(declared), catalog.IndexesAnnotation, "field:spec.priority")
	}
	for parameter, to := range map[string]**string{sortFromParameter: &sort.From, sortBeforeParameter: &sort.Before} {
		if !query.Has(parameter) {
			continue
		}
		value := query.Get(parameter)
		if sort.Index.Integer && !store.IsInteger(value) {
			return nil, fmt.Errorf("%s=%q must be a whole number, as %s is", parameter, value, name)
		}
		*to = &value
	}
	return sort, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
