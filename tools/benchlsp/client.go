package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type diagnostic struct {
	Range    span   `json:"range"`
	Severity int    `json:"severity"`
	Code     string `json:"code"`
	Message  string `json:"message"`
}

type published struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type change struct {
	Range *span  `json:"range,omitempty"`
	Text  string `json:"text"`
}

// client is an editor with the server as its child.
type client struct {
	conn *jsonrpc2.Conn
	cmd  *exec.Cmd

	mu     sync.Mutex
	cond   *sync.Cond
	newest map[string]published
	gone   bool
}

type pipe struct {
	io.Reader
	io.WriteCloser
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// startServer runs the server for a folder.
func startServer(ctx context.Context, program, folder string) (*client, error) {
	c := &client{cmd: exec.CommandContext(ctx, program, "lsp"), newest: make(map[string]published)}
	c.cond = sync.NewCond(&c.mu)
	c.cmd.Dir = folder
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.conn = jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(pipe{out, in}, jsonrpc2.VSCodeObjectCodec{}), c, jsonrpc2.SetLogger(quiet{}))
	go func() {
		<-c.conn.DisconnectNotify()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.gone = true
		c.cond.Broadcast()
	}()
	err = c.conn.Call(ctx, "initialize", map[string]any{
		"processId": os.Getpid(), "capabilities": map[string]any{}, "rootUri": uri(folder),
	}, nil)
	if err != nil {
		return nil, err
	}
	return c, c.conn.Notify(ctx, "initialized", map[string]any{})
}

// Handle takes what the server sends.
func (c *client) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Method != "textDocument/publishDiagnostics" || r.Params == nil {
		return
	}
	var p published
	if json.Unmarshal(*r.Params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest[p.URI] = p
	c.cond.Broadcast()
}

func uri(path string) string { return "file://" + filepath.ToSlash(path) }

func (c *client) open(ctx context.Context, path, text string) error {
	return c.conn.Notify(ctx, "textDocument/didOpen", map[string]any{
		"textDocument": map[string]any{"uri": uri(path), "languageId": "yaml", "version": 1, "text": text}})
}

func (c *client) change(ctx context.Context, path string, version int, changes ...change) error {
	return c.conn.Notify(ctx, "textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": uri(path), "version": version}, "contentChanges": changes})
}

// patience is how long the server may take for anything.
const patience = 5 * time.Minute

// await returns the diagnostics of a version that satisfy a condition.
func (c *client) await(path string, version int, ok func(*published) bool) (*published, error) {
	stop := time.AfterFunc(patience, c.cond.Broadcast)
	defer stop.Stop()
	deadline := time.Now().Add(patience)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		p := c.newest[uri(path)]
		if p.URI != "" && p.Version == version && (ok == nil || ok(&p)) {
			return &p, nil
		}
		switch {
		case c.gone:
			return nil, fmt.Errorf("the server has ended")
		case time.Now().After(deadline):
			return nil, fmt.Errorf("no diagnostics of version %d of %s within %v", version, path, patience)
		}
		c.cond.Wait()
	}
}

// ready waits until the server has read the folder: then it finds something in an object.
func (c *client) ready(ctx context.Context, g *generator, folder string) error {
	f := &g.crds[0].crd.Spec
	path := filepath.Join(folder, "ready.yaml")
	text := fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata:\n  name: UPPER\n", f.Group, f.Versions[0].Name, f.Names.Kind)
	if err := c.open(ctx, path, text); err != nil {
		return err
	}
	if _, err := c.await(path, 1, func(p *published) bool { return len(p.Diagnostics) > 0 }); err != nil {
		return err
	}
	return c.conn.Notify(ctx, "textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri(path)}})
}

// processor returns the time that the server has used processors.
func (c *client) processor() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel's unit on Linux
}

// memory returns the resident set of the server and its peak, in bytes.
func (c *client) memory() (now, peak int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kb << 10
		case "VmHWM":
			peak = kb << 10
		}
	}
	return now, peak
}

func (c *client) stop(ctx context.Context) {
	_ = c.conn.Call(ctx, "shutdown", nil, nil)
	_ = c.conn.Notify(ctx, "exit", nil)
	_ = c.cmd.Wait()
}
