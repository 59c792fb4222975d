package endpoints

import (
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldValidations are the words of flags and annotations for fieldValidation, and what
// requests say.
var FieldValidations = map[string]string{
	"warn": metav1.FieldValidationWarn, "strict": metav1.FieldValidationStrict, "ignore": metav1.FieldValidationIgnore,
}

// WithFieldValidation fills in fieldValidation where a request does not say. Empty is
// the default of the API, which is Warn.
func WithFieldValidation(req *http.Request, verb, validation string) *http.Request {
	if validation == "" || validation == metav1.FieldValidationWarn || verb != "create" && verb != "update" && verb != "patch" {
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
