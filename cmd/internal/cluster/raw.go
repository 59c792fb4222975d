package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// pageTimeout bounds a request for a page of objects. Servers answer after some ten seconds at most.
const pageTimeout = "90s"

// maxObject bounds a CRD or another single answer. etcd takes objects of 1.5 MiB.
const maxObject = 32 << 20

// maxPage bounds a page of objects: some hundred of the largest.
const maxPage = 1 << 30

// serverError begins what kubectl says of a status, with its reason.
var serverError = regexp.MustCompile(`^Error from server \((\w+)\): `)

// Reason is the reason of the status that a server has answered, as far as kubectl tells it: NotFound, Forbidden, Expired.
func Reason(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if m := serverError.FindStringSubmatch(err.Error()); m != nil {
			return m[1]
		}
	}
	return ""
}

// CRD returns the JSON of a CRD, nil if the cluster has none of this name.
func CRD(ctx context.Context, s Source, name string) ([]byte, error) {
	if len(name) > maxName || !safeName.MatchString(name) {
		return nil, fmt.Errorf("%q is no name of a CRD", name)
	}
	args := append([]string{"get", "customresourcedefinitions.v1.apiextensions.k8s.io", name, "-o", "json", "--ignore-not-found", "--request-timeout=" + requestTimeout}, s.flags()...)
	text, err := output(ctx, args, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s of the %s failed: %w", name, s, err)
	}
	return bytes.TrimSpace(text), nil
}

// Post sends JSON to a path of the server and returns its answer.
func Post(ctx context.Context, s Source, path string, body []byte) ([]byte, error) {
	args := append([]string{"create", "--raw=" + path, "-f", "-", "--request-timeout=" + pageTimeout}, s.flags()...)
	return output(ctx, args, bytes.NewReader(body))
}

// output returns what kubectl prints, up to a limit.
func output(ctx context.Context, args []string, in io.Reader) (text []byte, err error) {
	err = kubectl(ctx, args, in, func(out io.Reader) (err error) {
		if text, err = io.ReadAll(io.LimitReader(out, maxObject+1)); err == nil && len(text) > maxObject {
			err = fmt.Errorf("kubectl printed more than %d MiB", maxObject>>20)
		}
		return err
	})
	return text, err
}

// Page is what a list says beside its items.
type Page struct {
	Continue        string `json:"continue"`
	Remaining       int64  `json:"remainingItemCount"`
	ResourceVersion string `json:"resourceVersion"`
}

// List reads a page of objects at a path and calls a function with each. The text is valid during the call.
func List(ctx context.Context, s Source, path string, each func(object []byte) error) (p Page, err error) {
	args := append([]string{"get", "--raw=" + path, "--request-timeout=" + pageTimeout}, s.flags()...)
	err = kubectl(ctx, args, nil, func(out io.Reader) error { return decodeList(json.NewDecoder(io.LimitReader(out, maxPage)), &p, each) })
	return p, err
}

// Items reads a list as kubectl prints it in JSON, object by object. The text is valid during the call.
func Items(r io.Reader, each func(object []byte) error) error {
	return decodeList(json.NewDecoder(r), nil, each)
}

// Receive calls a function with what the server answers to a GET of a path, however long that takes.
func Receive(ctx context.Context, s Source, path string, read func(io.Reader) error) error {
	return kubectl(ctx, append([]string{"get", "--raw=" + path, "--request-timeout=0"}, s.flags()...), nil, read)
}

// Send posts to a path of the server what is read, however long that takes, and returns the answer.
func Send(ctx context.Context, s Source, path string, from io.Reader) ([]byte, error) {
	return output(ctx, append([]string{"create", "--raw=" + path, "-f", "-", "--request-timeout=0"}, s.flags()...), from)
}
