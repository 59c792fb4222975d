package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A Conn is one connection to a server.
type Conn struct {
	client http.Client
	base   string
	answer bytes.Buffer
}

// Dial prepares a connection; the first call opens it.
func Dial(config *rest.Config) (*Conn, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	return &Conn{
		base: config.Host,
		client: http.Client{Transport: &http.Transport{
			TLSClientConfig: tls, ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
			// Unpacking would be the client's work, and packing is not what is compared.
			DisableCompression: true,
		}},
	}, nil
}

// DialAll prepares n connections.
func DialAll(config *rest.Config, n int) ([]*Conn, error) {
	conns := make([]*Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = Dial(config); err != nil {
			return nil, err
		}
	}
	return conns, nil
}

// Close closes the connection.
func (c *Conn) Close() { c.client.CloseIdleConnections() }

// A Header is one line of a request beyond the usual.
type Header struct{ Name, Value string }

// Do sends a request and returns the answer's status, headers and body; the body is valid until the next call.
func (c *Conn) Do(ctx context.Context, method, path string, body []byte, headers ...Header) (status int, header http.Header, answer []byte, err error) {
	resp, err := c.send(ctx, method, path, body, headers)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	c.answer.Reset()
	if _, err := c.answer.ReadFrom(resp.Body); err != nil {
		return 0, nil, nil, err
	}
	return resp.StatusCode, resp.Header, c.answer.Bytes(), nil
}

// Expect is Do for requests that must be answered with one status.
func (c *Conn) Expect(ctx context.Context, want int, method, path string, body []byte) ([]byte, error) {
	status, _, answer, err := c.Do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	if status != want {
		return nil, fmt.Errorf("%s %s: %d, not %d: %.500s", method, path, status, want, answer)
	}
	return answer, nil
}

// Until repeats Expect until it succeeds or a time is over: what was just created is served a moment later.
func (c *Conn) Until(ctx context.Context, limit time.Duration, want int, method, path string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		_, err := c.Expect(ctx, want, method, path, body)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Drain gets a page and throws it away; it returns the size.
func (c *Conn) Drain(ctx context.Context, path string) (int64, error) {
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return io.Copy(io.Discard, resp.Body)
}

// Watch gets a stream of lines and hands each to event, until event says stop, the stream ends, or ctx does. ready is called when the
// server has answered. The line is valid during the call only.
func (c *Conn) Watch(ctx context.Context, path string, ready func(), event func(line []byte) (stop bool)) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	if ready != nil {
		ready()
	}
	lines := bufio.NewReaderSize(resp.Body, 1<<16)
	var long []byte
	for {
		part, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if err != nil {
			return err
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		if event(line) {
			return nil
		}
		long = long[:0]
	}
}

func (c *Conn) send(ctx context.Context, method, path string, body []byte, headers []Header) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "bench")
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		req.Header.Set(h.Name, h.Value)
	}
	return c.client.Do(req)
}

// Repeat runs an operation with several workers for a time, at least once each, and returns how long each run took. The first error ends it.
func Repeat(ctx context.Context, d time.Duration, workers int, operation func(ctx context.Context, worker int) error) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	latencies, errs := make([][]time.Duration, workers), make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for done := false; !done; done = time.Since(began) >= d {
				start := time.Now()
				if errs[w] = operation(ctx, w); errs[w] != nil {
					cancel()
					return
				}
				latencies[w] = append(latencies[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	return slices.Concat(latencies...), errors.Join(errs...)
}

// Percentile is the time that p of 100 requests took at most, 0 without requests. It sorts the times.
func Percentile(times []time.Duration, p int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)*p/100, len(times)-1)]
}
