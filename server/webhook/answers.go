package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"k8s.io/klog/v2"
)

const (
	// answerLimit is how long an answer may be, unless the caller says: a patch that
	// replaces the largest object there can be, in base64, fits in twice.
	answerLimit = 8 << 20
	// inFlight is how many bytes all answers together may have that are being read, or
	// that a request still needs. Converted objects take a small multiple of it.
	inFlight = 96 << 20
	// perWebhook is how many of them are one host's.
	perWebhook = inFlight / 2
	// uncounted is how much of each answer is not counted.
	uncounted = 64 << 10
	// countStep is how much is counted at once, so that reading an answer takes few locks.
	countStep = 256 << 10
	// loggedText is how much of an error's text goes to the log.
	loggedText = 512
)

// ErrBusy means that the answers of webhooks take all of the memory that they may
// take. The same call succeeds later.
var ErrBusy = errors.New("too many large answers of webhooks are being processed: try again later")

// budget counts the bytes of answers.
type budget struct {
	mu    sync.Mutex
	total int64
	hosts map[string]int64 // no entry: 0
}

func (b *budget) take(host string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	// One answer may be larger than a host's share: alone, it passes.
	if b.total+n > inFlight || b.hosts[host] > 0 && b.hosts[host]+n > perWebhook {
		return false
	}
	if b.hosts == nil {
		b.hosts = map[string]int64{}
	}
	b.total += n
	b.hosts[host] += n
	return true
}

func (b *budget) give(host string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= n
	if b.hosts[host] -= n; b.hosts[host] <= 0 {
		delete(b.hosts, host)
	}
}

// hold keeps what answers have been counted as until its request no longer needs
// them.
type hold struct {
	mu       sync.Mutex
	gives    []func()
	released bool
}

type holdKey struct{}

// Hold returns a context with which the answers of webhooks count until release is
// called. Without it they count until their body is closed. Holds do not nest: the
// outer one remains.
func Hold(ctx context.Context) (_ context.Context, release func()) {
	if ctx.Value(holdKey{}) != nil {
		return ctx, func() {}
	}
	h := &hold{}
	return context.WithValue(ctx, holdKey{}, h), h.release
}

func (h *hold) release() {
	h.mu.Lock()
	gives := h.gives
	h.gives, h.released = nil, true
	h.mu.Unlock()
	for _, give := range gives {
		give()
	}
}

// add has give called by release. A handler returns at its deadline while the write
// that it has begun goes on in another goroutine: what that adds later is given back at
// once.
func (h *hold) add(give func()) {
	h.mu.Lock()
	late := h.released
	if !late {
		h.gives = append(h.gives, give)
	}
	h.mu.Unlock()
	if late {
		give()
	}
}

// count returns a body that has no more bytes than it may have.
func (b *budget) count(ctx context.Context, host string, body io.ReadCloser) io.ReadCloser {
	limit, ok := ctx.Value(limitKey{}).(int64)
	if !ok {
		limit = answerLimit
	}
	h, _ := ctx.Value(holdKey{}).(*hold)
	return &answer{ReadCloser: body, budget: b, host: host, limit: limit, hold: h}
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser
	budget *budget
	host   string
	hold   *hold // nil: counted until it is closed
	limit  int64
	read   int64
	taken  int64
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if left := a.limit - a.read; int64(len(p)) > left+1 {
		p = p[:left+1]
	}
	n, err := a.ReadCloser.Read(p)
	a.read += int64(n)
	if a.read > a.limit {
		return 0, fmt.Errorf("the answer of the webhook is longer than %d bytes", a.limit)
	}
	for a.read-uncounted > a.taken {
		if !a.budget.take(a.host, countStep) {
			return 0, ErrBusy
		}
		a.taken += countStep
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	if taken := a.taken; taken > 0 {
		a.taken = 0
		give := func() { a.budget.give(a.host, taken) }
		if a.hold != nil {
			a.hold.add(give)
		} else {
			give()
		}
	}
	return a.ReadCloser.Close()
}

// conceal replaces the text of an answer that is an error with one that says where
// to find it.
func (c *Client) conceal(resp *http.Response) {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, loggedText))
	_ = resp.Body.Close()
	c.log.printf("Webhook %s answered %d: %q", resp.Request.URL.Redacted(), resp.StatusCode, Clean(string(text), loggedText))
	const instead = "the text of the answer is in this server's log"
	resp.Header = http.Header{"Content-Type": {"text/plain"}}
	resp.ContentLength = int64(len(instead))
	resp.Body = io.NopCloser(bytes.NewReader([]byte(instead)))
}

// Clean returns a text for one line of at most limit bytes, without control
// characters.
func Clean(text string, limit int) string {
	cut := len(text) > limit
	if cut {
		text = text[:limit]
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	if cut {
		text += "…"
	}
	return text
}

// limitedLog writes lines, but not more than logLines in logTime: what makes them is
// up to users.
type limitedLog struct {
	mu    sync.Mutex
	since time.Time
	lines int
}

const (
	logTime  = 10 * time.Second
	logLines = 20
)

func (l *limitedLog) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) > logTime {
		l.since, l.lines = now, 0
	}
	if l.lines++; l.lines <= logLines {
		klog.Warningf(format, args...)
	}
}
