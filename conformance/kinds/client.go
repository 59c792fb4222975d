package kinds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

// A Client sends requests to one server.
type Client struct {
	Name string
	url  string
	http *http.Client
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// NewClient returns a client with the rights of the configuration. It speaks HTTP/1.1, since a connection for each worker is faster
// than one for all.
func NewClient(name string, config *rest.Config, workers int) (*Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	tls.NextProtos = []string{"http/1.1"}
	transport := &http.Transport{TLSClientConfig: tls, MaxIdleConnsPerHost: workers + 2, IdleConnTimeout: time.Minute}
	return &Client{Name: name, url: config.Host, http: &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// A Request is what both servers are asked for.
type Request struct {
	Method  string
	Path    string // of the collection
	Name    any    // of the object: a string or a generator.Slot; nil for the collection
	Sub     string // resource
	Query   url.Values
	Type    string // of the body
	Accept  string
	Body    any // may have slots
	Purpose string
}

func (r *Request) path(n *answer.Normalizer) string {
	path := r.Path
	if r.Name != nil {
		name, _ := n.Fill(r.Name).(string)
		path += "/" + url.PathEscape(name)
	}
	if r.Sub != "" {
		path += "/" + r.Sub
	}
	if len(r.Query) > 0 {
		path += "?" + r.Query.Encode()
	}
	return path
}

// do sends a request with the values that the server gave to slots.
func (c *Client) do(ctx context.Context, r *Request, n *answer.Normalizer) (*answer.Answer, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = json.Marshal(n.Fill(r.Body)); err != nil {
			return nil, err
		}
	}
	response, data, err := c.send(ctx, r.Method, r.path(n), r.Type, r.Accept, body)
	if errors.Is(err, io.EOF) {
		// The server closes the connection where a handler panics.
		return &answer.Answer{Code: answer.Closed, Body: "connection closed"}, nil
	}
	if err != nil {
		return nil, err
	}
	return answer.Read(response, data), nil
}

func (c *Client) send(ctx context.Context, method, path, contentType, accept string, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", contentType)
	}
	if accept == "" {
		accept = "application/json"
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "kinds")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s %s failed: %w", c.Name, method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: reading the answer to %s %s failed: %w", c.Name, method, path, err)
	}
	return response, data, nil
}

// read returns the body of a GET that must succeed.
func (c *Client) read(ctx context.Context, path string) ([]byte, error) {
	response, data, err := c.send(ctx, http.MethodGet, path, "", "", nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: GET %s failed: %s: %s", c.Name, path, response.Status, strings.TrimSpace(string(data[:min(len(data), 300)])))
	}
	return data, nil
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	data, err := c.read(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// namespace makes a namespace unless it exists.
func (c *Client) namespace(ctx context.Context, name string) error {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	response, data, err := c.send(ctx, http.MethodPost, "/api/v1/namespaces", "application/json", "", []byte(body))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusConflict {
		return fmt.Errorf("%s: creating namespace %s failed: %s", c.Name, name, data)
	}
	return nil
}

// tableType asks for a table.
const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"
