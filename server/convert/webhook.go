package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"

	"github.com/espalier-dev/espalier/server/object"
)

const (
	// callTimeout bounds a call whose caller has more time, or all of it.
	callTimeout = 30 * time.Second
	// An answer has at most answerFrame bytes and, for each object, as many as etcd
	// takes in a request twice; and not more than answerLimit.
	answerFrame     = 64 << 10
	answerPerObject = 3 << 20
	answerLimit     = 512 << 20
)

// hook is a conversion webhook.
type hook struct {
	definition string
	versions   []string // of ConversionReview, the preferred first
	client     *http.Client
	url        string
}

func newHook(definition string, versions []string, client *rest.RESTClient) (*hook, error) {
	register()
	h := &hook{definition: definition, versions: versions, client: &http.Client{}, url: client.Post().URL().String()}
	if client.Client != nil {
		*h.client = *client.Client // shares the transport, and so the connections
	}
	// A redirect could lead to where only this server can go, with its credentials
	// (CVE-2022-3172). It comes back as the answer, and is refused.
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h, nil
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
	start := time.Now()
	gvk := objs[0].GroupVersionKind()
	converted, p := h.converted(ctx, objs, target)
	observe(ctx, h.definition, gvk.Version, target.Version, time.Since(start), p.failure)
	if p.err == nil {
		return converted, nil
	}
	if p.failure == callFailed || p.failure == malformedResponse {
		return nil, fmt.Errorf("conversion webhook for %v failed: %w", gvk, p.err)
	}
	return nil, fmt.Errorf("conversion webhook for %v returned %w", gvk, p.err)
}

// empty reports whether an object has nothing but a kind.
func empty(o *object.Object) bool {
	return o.GetName() == "" && o.GetUID() == "" && o.SameBody(object.New(o.GroupVersionKind()))
}

// converted makes the call and checks the answer.
func (h *hook) converted(ctx context.Context, objs []*object.Object, target schema.GroupVersion) ([]*object.Object, problem) {
	id := uuid.NewUUID()
	ctx, span := tracing.Start(ctx, "Call conversion webhook",
		attribute.String("custom-resource-definition", h.definition),
		attribute.String("desired-api-version", target.String()),
		attribute.Int("object-count", len(objs)),
		attribute.String("UID", string(id)))
	// What is slow: more than 8 ms for an object and 50 ms for the call.
	defer span.End(time.Duration(50+8*len(objs)) * time.Millisecond)

	version, err := reviewVersion(h.versions)
	if err != nil {
		return nil, problem{callFailed, err}
	}
	answer, err := h.post(ctx, appendReview(nil, version, id, target.String(), objs), len(objs))
	if err != nil {
		return nil, problem{callFailed, err}
	}
	span.AddEvent("Request completed")
	return read(answer, version, id, target, objs)
}

// post sends a review and returns the body of the answer.
func (h *hook) post(ctx context.Context, review []byte, objects int) ([]byte, error) {
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
	limit := min(answerFrame+int64(objects)*answerPerObject, answerLimit)
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	err = errors.Join(err, resp.Body.Close())
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fmt.Errorf("the webhook answers with a redirect (%s), which is not followed", resp.Status)
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("the answer is longer than %d bytes", limit)
	case resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent:
		return nil, statusError(resp, body)
	}
	return body, nil
}

// statusError is what Kubernetes' clients make of a status that is no success.
func statusError(resp *http.Response, body []byte) error {
	message := "unknown"
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/") {
		message = strings.TrimSpace(string(body[:min(len(body), 2048)]))
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodPost, schema.GroupResource{}, "", message, 0, true)
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

// appendReview appends a ConversionReview. The empty response is what webhooks get
// from Kubernetes: some decode it before they fill it in.
func appendReview(dst []byte, version string, id types.UID, desired string, objs []*object.Object) []byte {
	dst = fmt.Appendf(dst, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/%s","request":{"uid":%q,"desiredAPIVersion":%q,"objects":[`, version, id, desired)
	for i, o := range objs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = o.AppendJSON(dst)
	}
	return append(dst, `]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`...)
}
