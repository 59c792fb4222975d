package attack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// answerLimit is how much of an answer is read: attacks look at texts, not at volumes.
const answerLimit = 8 << 20

// A Client sends requests as one user.
type Client struct {
	Config *rest.Config
	http   *http.Client
}

func newClient(config *rest.Config) (*Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// An attacker sees a redirect; nothing follows it.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{Config: config, http: client}, nil
}

// Do sends a request whose path is sent as it is written, and returns the answer's code and text.
func (c *Client) Do(ctx context.Context, method, path, contentType, body string, headers ...string) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Config.Host+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	return resp.StatusCode, string(answer), err
}

// Must is Do for requests that have to succeed.
func (c *Client) Must(ctx context.Context, method, path, contentType, body string) (string, error) {
	code, text, err := c.Do(ctx, method, path, contentType, body)
	if err == nil && code >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %d: %.500s", method, path, code, text)
	}
	return text, err
}
