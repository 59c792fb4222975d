package lsp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/cmd/internal/lsp"
)

// client is an editor that talks to the real command through pipes.
type client struct {
	t     testing.TB
	conn  *jsonrpc2.Conn
	dir   string
	ended chan int
	err   *lockedBuffer

	mu        sync.Mutex
	cond      *sync.Cond
	published map[string][]published // by URI
	asked     []string               // methods that the server has called
	messages  []string
}

type published struct {
	URI         string           `json:"uri"`
	Version     int              `json:"version"`
	Diagnostics []lsp.Diagnostic `json:"diagnostics"`
}

type pipe struct {
	io.Reader
	io.Writer
	close func()
}

func (p pipe) Close() error { p.close(); return nil }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs the server in a folder with some files, and initializes it.
func start(t testing.TB, files map[string]string, options any) *client {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return startIn(t, dir, options)
}

func startIn(t testing.TB, dir string, options any) *client {
	t.Helper()
	c := &client{t: t, dir: dir, ended: make(chan int, 1), published: make(map[string][]published), err: &lockedBuffer{}}
	c.cond = sync.NewCond(&c.mu)
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	go func() {
		code := cli.Main(context.Background(), "espalier", []string{"lsp"}, toServer, fromServer, c.err)
		_ = fromServer.Close()
		c.ended <- code
	}()
	stream := pipe{toClient, fromClient, func() { _ = fromClient.Close() }}
	c.conn = jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(stream, jsonrpc2.VSCodeObjectCodec{}), c, jsonrpc2.SetLogger(quiet{}))
	t.Cleanup(func() {
		_ = c.conn.Close()
		if text := c.err.String(); strings.Contains(text, "goroutine") {
			t.Errorf("the server failed:\n%s", text)
		}
	})
	c.call("initialize", map[string]any{
		"processId": nil, "initializationOptions": options,
		"workspaceFolders": []map[string]string{{"uri": uriOf(dir), "name": "test"}},
		"capabilities": map[string]any{
			"workspace":    map[string]any{"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true}},
			"textDocument": map[string]any{"completion": map[string]any{"completionItem": map[string]any{"snippetSupport": true}}},
		},
	}, nil)
	c.notify("initialized", map[string]any{})
	return c
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Handle takes what the server sends.
func (c *client) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.cond.Broadcast()
	switch r.Method {
	case "textDocument/publishDiagnostics":
		var p published
		if err := json.Unmarshal(*r.Params, &p); err == nil {
			c.published[p.URI] = append(c.published[p.URI], p)
		}
	case "window/showMessage":
		c.messages = append(c.messages, string(*r.Params))
	default:
		c.asked = append(c.asked, r.Method)
		if !r.Notif {
			go func() { _ = conn.Reply(ctx, r.ID, nil) }()
		}
	}
}

func uriOf(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

func (c *client) uri(name string) string { return uriOf(filepath.Join(c.dir, name)) }

func (c *client) call(method string, params, result any) {
	c.t.Helper()
	if err := c.try(method, params, result); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *client) try(method string, params, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return c.conn.Call(ctx, method, params, result)
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	if err := c.conn.Notify(context.Background(), method, params); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *client) open(name, text string) {
	c.t.Helper()
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": c.uri(name), "languageId": "yaml", "version": 1, "text": text}})
}

type change struct {
	Range *lsp.Range `json:"range,omitempty"`
	Text  string     `json:"text"`
}

func (c *client) change(name string, version int, changes ...change) {
	c.t.Helper()
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": c.uri(name), "version": version}, "contentChanges": changes})
}

// until waits for the server to say something.
func (c *client) until(what string, done func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	stop := time.AfterFunc(time.Minute, c.cond.Broadcast)
	defer stop.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !done() {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited for %s in vain; published: %+v; log: %s", what, c.published, c.err)
		}
		c.cond.Wait()
	}
}

// diagnostics waits until the newest diagnostics of a version satisfy a condition, and returns them, without the one
// for rules that errors keep from running.
func (c *client) diagnostics(name string, version int, ok func([]lsp.Diagnostic) bool) []lsp.Diagnostic {
	c.t.Helper()
	var found []lsp.Diagnostic
	c.until("diagnostics of "+name, func() bool {
		all := c.published[c.uri(name)]
		if len(all) == 0 || all[len(all)-1].Version != version {
			return false
		}
		found = slices.DeleteFunc(slices.Clone(all[len(all)-1].Diagnostics), func(d lsp.Diagnostic) bool {
			return strings.HasSuffix(d.Message, "correct the other errors first")
		})
		return ok == nil || ok(found)
	})
	return found
}

// codes lists the checks of diagnostics.
func codes(all []lsp.Diagnostic) string {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.Code)
	}
	return strings.Join(ids, " ")
}

func has(want string) func([]lsp.Diagnostic) bool {
	return func(all []lsp.Diagnostic) bool { return codes(all) == want }
}

func (c *client) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}
