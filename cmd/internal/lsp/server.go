package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

// maxMessage bounds a message of the editor: a file, with its characters escaped.
const maxMessage = 4 * maxText

// Config describes the program.
type Config struct {
	Version string
	Log     io.Writer // of errors of the server itself; editors show standard error
}

// Server is a connection to an editor.
type Server struct {
	engine    Engine
	config    Config
	ctx       context.Context // ends with the connection
	conn      *jsonrpc2.Conn
	workspace *workspace
	running   sync.WaitGroup
	outbox    outbox

	mu          sync.Mutex
	initialized bool
	shutdown    bool
	snippets    bool // the editor fills in the gaps of what it inserts
	watches     bool // the editor tells when files change
	folders     []string
	options     options
	documents   map[string]*document
	requests    map[jsonrpc2.ID]context.CancelFunc
	settings    map[string]Settings // by folder
	scanning    context.CancelFunc
	clusters    clusters
	exit        chan struct{}
}

// options are the editor's settings.
type options struct {
	Options
	crds    []string // patterns
	cluster cluster.Source
}

// Serve talks to an editor until it exits. It reports an error if the editor goes away without saying so.
func Serve(ctx context.Context, stream io.ReadWriteCloser, engine Engine, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &Server{
		engine: engine, config: c, ctx: ctx, workspace: newWorkspace(engine),
		options:   options{Options: Options{Severity: finding.Warning}},
		documents: make(map[string]*document), requests: make(map[jsonrpc2.ID]context.CancelFunc),
		settings: make(map[string]Settings), exit: make(chan struct{}),
	}
	in := &bounded{ReadWriteCloser: stream}
	ready := make(chan struct{})
	s.conn = jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(in, in), handlerFunc(func(ctx context.Context, r *jsonrpc2.Request) {
		<-ready
		s.handle(ctx, r)
	}), jsonrpc2.SetLogger(silent{}))
	s.outbox.wake = make(chan struct{}, 1)
	s.running.Go(func() { s.outbox.run(ctx, s.conn) })
	close(ready)
	select {
	case <-s.exit:
	case <-s.conn.DisconnectNotify():
	case <-ctx.Done():
	}
	cancel()
	_ = s.conn.Close()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shutdown && s.initialized {
		return errors.New("the editor closed the connection without the request shutdown")
	}
	return nil
}

type handlerFunc func(context.Context, *jsonrpc2.Request)

func (f handlerFunc) Handle(ctx context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) { f(ctx, r) }

// silent drops what the library logs: answers to requests that were cancelled, ends of connections.
type silent struct{}

func (silent) Printf(string, ...any) {}

// bounded limits the size of messages.
type bounded struct {
	io.ReadWriteCloser
	jsonrpc2.VSCodeObjectCodec
	left int
}

var errMessage = fmt.Errorf("a message is larger than %d MiB", maxMessage>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errMessage
	}
	n, err := b.ReadWriteCloser.Read(p)
	b.left -= n
	return n, err
}

// ReadObject reads a message.
func (b *bounded) ReadObject(r *bufio.Reader, v any) error {
	b.left = maxMessage
	return b.VSCodeObjectCodec.ReadObject(r, v)
}

// outbox sends notifications in order. An editor that reads slowly does not keep the server from
// reading.
type outbox struct {
	mu      sync.Mutex
	waiting []notification
	wake    chan struct{}
}

type notification struct {
	method string
	params any
}

func (o *outbox) add(n notification) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p, ok := n.params.(publishParams); ok {
		// Only the newest diagnostics of a file count.
		for i := range o.waiting {
			if old, ok := o.waiting[i].params.(publishParams); ok && old.URI == p.URI {
				o.waiting[i].params = p
				return
			}
		}
	}
	o.waiting = append(o.waiting, n)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) run(ctx context.Context, conn *jsonrpc2.Conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		o.mu.Lock()
		all := o.waiting
		o.waiting = nil
		o.mu.Unlock()
		for _, n := range all {
			if conn.Notify(ctx, n.method, n.params) != nil {
				return
			}
		}
	}
}

func (s *Server) notify(method string, params any) { s.outbox.add(notification{method, params}) }

// handle processes a message. The library calls it for one message after the other.
func (s *Server) handle(ctx context.Context, r *jsonrpc2.Request) {
	if r.Notif {
		defer s.survive(r.Method)
		s.notification(r)
		return
	}
	if r.Method == "initialize" || r.Method == "shutdown" {
		result, err := s.lifecycle(r)
		// The reader must not wait for the editor to read: the editor may do the same.
		s.running.Go(func() { s.answer(ctx, r, func(context.Context) (any, error) { return result, err }) })
		return
	}
	s.mu.Lock()
	ready := s.initialized && !s.shutdown
	ctx, cancel := context.WithCancel(ctx)
	s.requests[r.ID] = cancel
	s.mu.Unlock()
	run, err := s.request(r)
	if !ready {
		run, err = nil, &jsonrpc2.Error{Code: codeNotInitialized, Message: "the server is not initialized, or shut down"}
	}
	s.running.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.requests, r.ID)
			s.mu.Unlock()
		}()
		s.answer(ctx, r, func(ctx context.Context) (any, error) {
			if err != nil {
				return nil, err
			}
			return run(ctx)
		})
	})
}

// The codes of errors that the protocol adds to those of JSON-RPC.
const (
	codeNotInitialized = -32002
	codeCancelled      = -32800
)

// answer runs a request and sends its result.
func (s *Server) answer(ctx context.Context, r *jsonrpc2.Request, run func(context.Context) (any, error)) {
	result, err := func() (result any, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.logPanic(r.Method, p)
				err = &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: fmt.Sprint("the server failed: ", p)}
			}
		}()
		return run(ctx)
	}()
	if err == nil && ctx.Err() != nil {
		err = &jsonrpc2.Error{Code: codeCancelled, Message: "cancelled"}
	}
	if err != nil {
		var coded *jsonrpc2.Error
		if !errors.As(err, &coded) {
			coded = &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
		}
		_ = s.conn.ReplyWithError(s.ctx, r.ID, coded)
		return
	}
	_ = s.conn.Reply(s.ctx, r.ID, result)
}

// survive keeps the server running after a bug: the editor's other files still work.
func (s *Server) survive(what string) {
	if p := recover(); p != nil {
		s.logPanic(what, p)
	}
}

func (s *Server) logPanic(what string, p any) {
	if s.config.Log != nil {
		fmt.Fprintf(s.config.Log, "%s failed: %v\n%s\n", what, p, debug.Stack())
	}
}

func (s *Server) lifecycle(r *jsonrpc2.Request) (any, error) {
	if r.Method == "shutdown" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shutdown = true
		return nil, nil
	}
	var p initializeParams
	if err := decode(r, &p); err != nil {
		return nil, err
	}
	return s.initialize(&p)
}

// request returns what answers a request. It takes the texts that the request is about now: later
// notifications change them.
func (s *Server) request(r *jsonrpc2.Request) (func(context.Context) (any, error), error) {
	if r.Method == "textDocument/codeAction" {
		return s.codeActionRequest(r)
	}
	answer := map[string]func(context.Context, *view) (any, error){
		"textDocument/completion": s.completion,
		"textDocument/hover":      s.hover,
		"textDocument/definition": s.schemaPlace,
	}[r.Method]
	if answer == nil {
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "there is no method " + r.Method}
	}
	var p positionParams
	if err := decode(r, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	v := s.view(p.TextDocument.URI, p.Position)
	s.mu.Unlock()
	return func(ctx context.Context) (any, error) {
		if v == nil {
			return nil, nil
		}
		return answer(ctx, v)
	}, nil
}

func decode(r *jsonrpc2.Request, into any) error {
	if r.Params == nil {
		return errors.New("params are missing")
	}
	return json.Unmarshal(*r.Params, into)
}

// settingsFor returns the settings of the file's folder. A settings file with an error counts as empty.
func (s *Server) settingsFor(path string) Settings {
	dir := filepath.Dir(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settingsOf(dir)
}

func (s *Server) settingsOf(dir string) Settings {
	if known, ok := s.settings[dir]; ok {
		return known
	}
	found, err := s.engine.Settings(dir)
	if err != nil {
		s.notify("window/showMessage", messageParams{Type: messageError, Message: "reading the settings failed: " + err.Error()})
	}
	s.settings[dir] = found
	return found
}
