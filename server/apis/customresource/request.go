package customresource

import (
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldValidations are the values of fieldValidationAnnotation, and what
// requests say.
var fieldValidations = map[string]string{
	"warn": metav1.FieldValidationWarn, "strict": metav1.FieldValidationStrict, "ignore": metav1.FieldValidationIgnore,
}

// withFieldValidation fills in fieldValidation where a request does not say:
// what the CRD says, or else the server.
func (s *Server) withFieldValidation(req *http.Request, verb string, v *crdInfo) *http.Request {
	if verb != "create" && verb != "update" && verb != "patch" {
		return req
	}
	validation, ok := fieldValidations[strings.ToLower(v.details.annotations[fieldValidationAnnotation])]
	if !ok {
		validation = s.options.FieldValidation
	}
	if validation == "" || validation == metav1.FieldValidationWarn {
		return req
	}
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil || query.Has("fieldValidation") {
		return req // the handler reports the error
	}
	query.Set("fieldValidation", validation)
	changed, location := *req, *req.URL
	location.RawQuery = query.Encode()
	changed.URL = &location
	return &changed
}
