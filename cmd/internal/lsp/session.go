package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

// settingsFile is the name of settings files, which the editor watches.
const settingsFile = ".espalier.yaml"

func (s *Server) initialize(p *initializeParams) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialized {
		return nil, fmt.Errorf("the server is initialized already")
	}
	s.initialized = true
	s.snippets = p.Capabilities.TextDocument.Completion.CompletionItem.SnippetSupport
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	for _, f := range p.Folders {
		s.folders = append(s.folders, uriToPath(f.URI))
	}
	if len(s.folders) == 0 && p.RootURI != "" {
		s.folders = []string{uriToPath(p.RootURI)}
	} else if len(s.folders) == 0 && p.RootPath != "" {
		s.folders = []string{p.RootPath}
	}
	if err := s.configure(p.InitializationOptions); err != nil {
		s.notify("window/showMessage", messageParams{Type: messageError, Message: err.Error()})
	}
	var r initializeResult
	r.ServerInfo.Name, r.ServerInfo.Version = "espalier", s.config.Version
	r.Capabilities = capabilities{
		PositionEncoding:   "utf-16",
		TextDocumentSync:   syncOptions{OpenClose: true, Change: syncIncremental, Save: true},
		CompletionProvider: &completionOptions{TriggerCharacters: []string{".", " ", "\n", "\""}},
		HoverProvider:      true,
		DefinitionProvider: true,
		CodeActionProvider: &actionOptions{CodeActionKinds: []string{actionQuickFix}},
	}
	r.Capabilities.Workspace.WorkspaceFolders.Supported = true
	r.Capabilities.Workspace.WorkspaceFolders.ChangeNotifications = true
	return r, nil
}

// configure reads the editor's settings. Those that are wrong leave all as they are.
func (s *Server) configure(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	type fields struct {
		CRDs          []string `json:"crds"`
		Severity      string   `json:"severity"`
		IgnoreMissing bool     `json:"ignoreMissing"`
		Kubernetes    string   `json:"kubernetesVersion"`
		Cluster       struct {
			Kubeconfig string `json:"kubeconfig"`
			Context    string `json:"context"`
		} `json:"cluster"`
	}
	var outer struct {
		fields
		Espalier *fields `json:"espalier"` // as VS Code sends it
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return fmt.Errorf("reading the editor's settings failed: %w", err)
	}
	f := &outer.fields
	if outer.Espalier != nil {
		f = outer.Espalier
	} else if f.CRDs == nil && f.Severity == "" && !f.IgnoreMissing && f.Kubernetes == "" && f.Cluster.Kubeconfig == "" && f.Cluster.Context == "" {
		return nil // editors also send settings of other servers
	}
	next := options{Options: Options{Severity: finding.Warning, IgnoreMissing: f.IgnoreMissing, Kubernetes: f.Kubernetes}, crds: f.CRDs}
	next.cluster = cluster.Source{Kubeconfig: s.kubeconfig(f.Cluster.Kubeconfig), Context: f.Cluster.Context}
	if f.Severity != "" {
		severity, err := finding.ParseSeverity(f.Severity)
		if err != nil {
			return fmt.Errorf("espalier.severity: %w", err)
		}
		next.Severity = severity
	}
	s.options = next
	return nil
}

func (s *Server) notification(r *jsonrpc2.Request) {
	handle := map[string]func(*jsonrpc2.Request) error{
		"initialized":                         s.onInitialized,
		"exit":                                s.onExit,
		"$/cancelRequest":                     s.onCancel,
		"textDocument/didOpen":                s.onOpen,
		"textDocument/didChange":              s.onChange,
		"textDocument/didClose":               s.onClose,
		"textDocument/didSave":                s.onSave,
		"workspace/didChangeWatchedFiles":     s.onWatched,
		"workspace/didChangeWorkspaceFolders": s.onFolders,
		"workspace/didChangeConfiguration":    s.onConfiguration,
	}[r.Method]
	if handle == nil {
		return // the protocol says to ignore those that are not known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.initialized && r.Method != "exit" {
		return
	}
	if err := handle(r); err != nil && s.config.Log != nil {
		fmt.Fprintf(s.config.Log, "%s failed: %v\n", r.Method, err)
	}
}

func (s *Server) onInitialized(*jsonrpc2.Request) error {
	if s.watches {
		options := watchOptions{Watchers: []watcher{{"**/*.{yaml,yml,json}"}, {"**/" + settingsFile}}}
		params := registrationParams{Registrations: []registration{{ID: "espalier-files", Method: "workspace/didChangeWatchedFiles", RegisterOptions: options}}}
		s.running.Go(func() { _ = s.conn.Call(s.ctx, "client/registerCapability", params, nil) })
	}
	s.rescan()
	return nil
}

func (s *Server) onExit(*jsonrpc2.Request) error {
	select {
	case <-s.exit:
	default:
		close(s.exit)
	}
	return nil
}

func (s *Server) onCancel(r *jsonrpc2.Request) error {
	var p struct {
		ID jsonrpc2.ID `json:"id"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if cancel := s.requests[p.ID]; cancel != nil {
		cancel()
	}
	return nil
}

func (s *Server) onOpen(r *jsonrpc2.Request) error {
	var p didOpenParams
	if err := decode(r, &p); err != nil {
		return err
	}
	d := &document{uri: p.TextDocument.URI, path: uriToPath(p.TextDocument.URI), version: p.TextDocument.Version}
	switch p.TextDocument.LanguageID {
	case "", "yaml", "yml", "json", "jsonc", "kubernetes", "yaml.kubernetes":
	default: // Helm and docker-compose have files that are no manifests
		d.skipped = true
	}
	if len(p.TextDocument.Text) > maxText {
		return errLarge
	}
	d.text = newText(p.TextDocument.Text)
	if before := s.documents[d.uri]; before != nil && before.cancel != nil {
		before.cancel()
	}
	s.documents[d.uri] = d
	s.schedule(d)
	s.readClusters()
	return nil
}

func (s *Server) onChange(r *jsonrpc2.Request) error {
	var p didChangeParams
	if err := decode(r, &p); err != nil {
		return err
	}
	d := s.documents[p.TextDocument.URI]
	if d == nil {
		return fmt.Errorf("%s is not open", p.TextDocument.URI)
	}
	t, err := d.text.apply(p.ContentChanges)
	if err != nil {
		return err
	}
	d.version = p.TextDocument.Version
	d.change(t)
	s.schedule(d)
	return nil
}

func (s *Server) onClose(r *jsonrpc2.Request) error {
	var p documentParams
	if err := decode(r, &p); err != nil {
		return err
	}
	d := s.documents[p.TextDocument.URI]
	if d == nil {
		return nil
	}
	if d.cancel != nil {
		d.cancel()
	}
	delete(s.documents, d.uri)
	s.notify("textDocument/publishDiagnostics", publishParams{URI: d.uri, Version: d.version, Diagnostics: []Diagnostic{}})
	s.running.Go(func() {
		s.workspace.close(d.path)
		s.scheduleOthers(nil)
	})
	return nil
}

// onSave reads settings again for editors that do not watch files.
func (s *Server) onSave(r *jsonrpc2.Request) error {
	var p documentParams
	if err := decode(r, &p); err != nil {
		return err
	}
	s.changed([]string{uriToPath(p.TextDocument.URI)})
	return nil
}

func (s *Server) onWatched(r *jsonrpc2.Request) error {
	var p watchedParams
	if err := decode(r, &p); err != nil {
		return err
	}
	var paths []string
	for _, c := range p.Changes {
		paths = append(paths, uriToPath(c.URI))
	}
	s.changed(paths)
	return nil
}

// manyFiles is from how many changed files on all are read again.
const manyFiles = 100

// changed reads files again that have changed on disk.
func (s *Server) changed(paths []string) {
	if slices.ContainsFunc(paths, func(p string) bool { return filepath.Base(p) == settingsFile }) || len(paths) > manyFiles {
		clear(s.settings)
		s.rescan()
		return
	}
	s.running.Go(func() {
		for _, p := range paths {
			if s.ctx.Err() != nil {
				return
			}
			s.workspace.read(p)
		}
		s.scheduleOthers(nil)
	})
}

func (s *Server) onFolders(r *jsonrpc2.Request) error {
	var p foldersParams
	if err := decode(r, &p); err != nil {
		return err
	}
	for _, f := range p.Event.Removed {
		s.folders = slices.DeleteFunc(s.folders, func(path string) bool { return path == uriToPath(f.URI) })
	}
	for _, f := range p.Event.Added {
		s.folders = append(s.folders, uriToPath(f.URI))
	}
	s.rescan()
	return nil
}

func (s *Server) onConfiguration(r *jsonrpc2.Request) error {
	var p configurationParams
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := s.configure(p.Settings); err != nil {
		s.notify("window/showMessage", messageParams{Type: messageError, Message: err.Error()})
		return nil
	}
	s.rescan()
	return nil
}

// rescan reads the CRDs of all folders again. The caller holds the mutex.
func (s *Server) rescan() {
	s.readClusters()
	if s.scanning != nil {
		s.scanning()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.scanning = cancel
	folders := slices.Clone(s.folders)
	var patterns []string
	for _, p := range s.options.crds {
		if filepath.IsAbs(p) || len(folders) == 0 {
			patterns = append(patterns, p)
			continue
		}
		for _, dir := range folders {
			patterns = append(patterns, filepath.Join(dir, p))
		}
	}
	s.running.Go(func() {
		defer s.survive("reading the folders")
		defer cancel()
		s.workspace.scan(ctx, folders, patterns, func(dir string) Settings {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.settingsOf(dir)
		})
		if ctx.Err() == nil {
			s.scheduleOthers(nil)
		}
	})
}

// uriToPath returns the file that a URI names; the URI if it names none.
func uriToPath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = filepath.FromSlash(strings.TrimPrefix(path, "/"))
	}
	return path
}

// pathToURI is the inverse of uriToPath.
func pathToURI(path string) string {
	if strings.Contains(path, ":") && !filepath.IsAbs(path) {
		return path // a file that is not saved yet, such as untitled:1
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
