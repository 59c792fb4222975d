package converter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/webhook"
)

const (
	// callTimeout bounds a call whose caller has more time, or all of it.
	callTimeout = 30 * time.Second
	// A call has at most callObjects objects, and as many bytes as callBytes and one
	// more object. A longer list is converted by several calls, one after the other:
	// neither side has to have all of it in one piece.
	callObjects = 500
	callBytes   = 4 << 20
	// An answer has at most answerFrame bytes and, for each object, as many as etcd
	// takes in a request twice.
	answerFrame     = 64 << 10
	answerPerObject = 3 << 20
	// All answers to one list have at most answerSum bytes and answerGrowth times as
	// many as the objects have that were sent. What a list costs is in proportion to
	// what is stored.
	answerSum    = 16 << 20
	answerGrowth = 4
	// messageLimit is how much of a webhook's own words becomes part of an error.
	messageLimit = 1 << 10
)

// hook is a conversion webhook.
type hook struct {
	definition string
	versions   []string // of ConversionReview, the preferred first
	client     *http.Client
	url        string
}

func newHook(definition string, versions []string, client *rest.RESTClient) *hook {
	register()
	h := &hook{definition: definition, versions: versions, client: http.DefaultClient, url: client.Post().URL().String()}
	if client.Client != nil {
		h.client = client.Client // refuses redirects, and bounds answers
	}
	return h
}

// problem is what has gone wrong, for callers and for metrics.
type problem struct {
	failure
	err error
}

// translate asks the webhook.
func (h *hook) translate(ctx context.Context, objs []*object.Object, target schema.GroupVersion) ([]*object.Object, error) {
	if len(objs) == 1 && empty(objs[0]) {
		// Conversion neither fills in nor checks anything: nothing stays nothing.
		return rename(ctx, objs, target)
	}
	ctx, release := webhook.Hold(ctx) // until the last answer has been read, if not until the request ends
	defer release()
	result := make([]*object.Object, 0, len(objs))
	l := list{budget: answerSum}
	for len(objs) > 0 {
		start := time.Now()
		gvk := objs[0].GroupVersionKind()
		converted, p := h.converted(ctx, objs, target, &l)
		observe(ctx, h.definition, gvk.Version, target.Version, time.Since(start), p.failure)
		if p.err != nil {
			return nil, failed(gvk, p)
		}
		result, objs = append(result, converted...), objs[len(converted):]
	}
	return result, nil
}

// list is what the calls for one list have in common.
type list struct {
	budget int64 // bytes that answers may still have
}

// empty reports whether an object has nothing but a kind.
func empty(o *object.Object) bool {
	return o.GetName() == "" && o.GetUID() == "" && o.SameBody(object.New(o.GroupVersionKind()))
}

// converted makes a call for the first of the objects, and checks the answer.
func (h *hook) converted(ctx context.Context, objs []*object.Object, target schema.GroupVersion, l *list) ([]*object.Object, problem) {
	version, err := reviewVersion(h.versions)
	if err != nil {
		return nil, problem{callFailed, err}
	}
	id := uuid.NewUUID()
	review, objs := appendReview(nil, version, id, target.String(), objs)
	ctx, span := tracing.Start(ctx, "Call conversion webhook",
		attribute.String("custom-resource-definition", h.definition),
		attribute.String("desired-api-version", target.String()),
		attribute.Int("object-count", len(objs)),
		attribute.String("UID", string(id)))
	// What is slow: more than 8 ms for an object and 50 ms for the call.
	defer span.End(time.Duration(50+8*len(objs)) * time.Millisecond)

	l.budget += answerGrowth * int64(len(review))
	answer, err := h.post(webhook.Limited(ctx, min(answerFrame+int64(len(objs))*answerPerObject, l.budget)), review)
	if err != nil {
		return nil, problem{callFailed, err}
	}
	l.budget -= int64(len(answer))
	span.AddEvent("Request completed")
	return read(answer, version, id, target, objs)
}

// post sends a review and returns the body of the answer. The context bounds how long
// that may be.
func (h *hook) post(ctx context.Context, review []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, */*")
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("Post %q: reading the answer: %w", h.url, err) //nolint:staticcheck,revive // as net/http begins its errors
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent {
		return nil, fmt.Errorf("Post %q: the webhook answered %d %s: %s%s", h.url, resp.StatusCode, http.StatusText(resp.StatusCode), //nolint:staticcheck,revive // as net/http begins its errors
			clientText(resp.StatusCode), webhook.Clean(string(body), messageLimit))
	}
	return body, nil
}

// clientText returns client-go's sentence for a status, which clients of upstream find in
// the error. For servers' errors it has none but the body of the answer.
func clientText(code int) string {
	if code >= http.StatusInternalServerError {
		return ""
	}
	return apierrors.NewGenericServerResponse(code, "post", schema.GroupResource{}, "", "", 0, true).ErrStatus.Message + ": "
}

// reviewVersion returns the first version of ConversionReview that we know.
func reviewVersion(versions []string) (string, error) {
	for _, v := range versions {
		if v == "v1" || v == "v1beta1" {
			return v, nil
		}
	}
	return "", errors.New("no supported conversion review versions")
}

// appendReview appends a ConversionReview of the first of the objects, and returns
// them. The empty response is what webhooks get from Kubernetes: some decode it
// before they fill it in.
func appendReview(dst []byte, version string, id types.UID, desired string, objs []*object.Object) ([]byte, []*object.Object) {
	dst = fmt.Appendf(dst, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/%s","request":{"uid":%q,"desiredAPIVersion":%q,"objects":[`, version, id, desired)
	n := 0
	for n < len(objs) && n < callObjects && len(dst) < callBytes {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = objs[n].AppendJSON(dst)
		n++
	}
	return append(dst, `]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`...), objs[:n]
}
