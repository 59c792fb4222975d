package scenarios

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// An editor talks to espalier lsp on a workstation.
type editor struct {
	t     *testing.T
	dir   string
	in    io.WriteCloser
	heard chan string // messages of the server
	all   []string
}

func startEditor(t *testing.T, w *workstation, options any) *editor {
	t.Helper()
	cmd := w.command(t.Context(), "lsp")
	cmd.Dir = t.TempDir()
	e := &editor{t: t, dir: cmd.Dir, in: must[io.WriteCloser](t)(cmd.StdinPipe()), heard: make(chan string, 1000)}
	out := must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.heard)
		for r := bufio.NewReader(out); ; {
			header, err := textproto.NewReader(r).ReadMIMEHeader()
			if err != nil {
				return
			}
			n, _ := strconv.Atoi(header.Get("Content-Length"))
			text := make([]byte, n)
			if _, err := io.ReadFull(r, text); err != nil {
				return
			}
			e.heard <- string(text)
		}
	}()
	t.Cleanup(func() {
		_ = e.in.Close()
		for range e.heard { // until the program ends
		}
		_ = cmd.Wait()
	})
	e.send(map[string]any{"id": 1, "method": "initialize", "params": map[string]any{
		"capabilities": map[string]any{}, "rootUri": "file://" + e.dir, "initializationOptions": options}})
	e.send(map[string]any{"method": "initialized", "params": map[string]any{}})
	return e
}

func (e *editor) send(message map[string]any) {
	e.t.Helper()
	message["jsonrpc"] = "2.0"
	text := must[[]byte](e.t)(json.Marshal(message))
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editor) open(name, text string) {
	e.t.Helper()
	e.send(map[string]any{"method": "textDocument/didOpen", "params": map[string]any{
		"textDocument": map[string]any{"uri": "file://" + filepath.Join(e.dir, name), "languageId": "yaml", "version": 1, "text": text}}})
}

// hears waits for a message with all texts.
func (e *editor) hears(texts ...string) {
	e.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case message, ok := <-e.heard:
			if !ok {
				e.t.Fatalf("the server ended; it said %s", strings.Join(e.all, "\n"))
			}
			e.all = append(e.all, message)
			missing := 0
			for _, text := range texts {
				if !strings.Contains(message, text) {
					missing++
				}
			}
			if missing == 0 {
				return
			}
		case <-limit:
			e.t.Fatalf("no message with %q in %s", texts, strings.Join(e.all, "\n"))
		}
	}
}

// The language server validates by the CRDs of a real cluster, and by those of its cache once the cluster is away.
func TestEditorWithCluster(t *testing.T) {
	needsDiscovery(t)
	s := serve(t, launch.Espalier, prefix())
	k := newKubectl(t, s)
	k.install("boats.yaml", boats)
	w := newWorkstation(t, "")
	pink := strings.Replace(readFile(t, "testdata/albatros.yaml"), "colour: red", "colour: pink", 1)
	settings := map[string]any{"cluster": map[string]any{"kubeconfig": s.Kubeconfig}}

	e := startEditor(t, w, settings)
	e.open("boat.yaml", pink)
	e.hears("publishDiagnostics", "boat.yaml", "enum", "pink")

	// The kubeconfig goes with the server's folder: the user keeps a copy.
	kept := filepath.Join(w.home, "kubeconfig")
	writeFile(t, kept, readFile(t, s.Kubeconfig))
	stop(t, s)
	e = startEditor(t, w, map[string]any{"cluster": map[string]any{"kubeconfig": "~/kubeconfig"}})
	e.open("boat.yaml", pink)
	e.hears("publishDiagnostics", "boat.yaml", "enum", "pink")
	e.hears("window/showMessage", "reading the CRDs of the cluster of "+kept+" failed: ", "refused", "Its CRDs are those of 2")
}
