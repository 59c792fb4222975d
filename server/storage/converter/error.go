package converter

import (
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/webhook"
)

// callError is that of a conversion webhook. It is a status, with the text that
// Kubernetes has.
type callError struct {
	text  string
	cause error
}

// failed is the error for a problem with the conversion of objects of a kind.
func failed(gvk schema.GroupVersionKind, p problem) error {
	verb := "returned"
	if p.failure == callFailed || p.failure == malformedResponse {
		verb = "failed:"
	}
	return &callError{webhook.Clean(fmt.Sprintf("conversion webhook for %v %s %v", gvk, verb, p.err), 2*messageLimit), p.err}
}

// Error implements error.
func (e *callError) Error() string { return e.text }

// Unwrap implements errors.
func (e *callError) Unwrap() error { return e.cause }

// Status implements errors.APIStatus.
func (e *callError) Status() metav1.Status {
	s := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: e.text}
	if errors.Is(e.cause, webhook.ErrBusy) {
		s.Code, s.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return s
}
