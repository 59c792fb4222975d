//go:build unix

package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/options"

	"github.com/espalier-dev/espalier/server"
)

// The audit log, traces and logs keep the URI of a request. The server refuses a long
// one before any of them sees it, from any client.
func TestLongURIsAreRefused(t *testing.T) {
	r := start(t)
	const path = "/api/v1/namespaces/default/configmaps?x="
	for name, client := range map[string]*http.Client{"administrator": r.member(t, "system:masters"), "stranger": r.stranger(t)} {
		if code, body := get(t, client, r.url+path+strings.Repeat("x", 16<<10-len(path))); code == http.StatusRequestURITooLong {
			t.Errorf("%s: 16 KiB: %d: %.300s", name, code, body)
		}
		code, body := get(t, client, r.url+path+strings.Repeat("x", 16<<10-len(path)+1))
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || code != http.StatusRequestURITooLong || status.Kind != "Status" || status.Code != http.StatusRequestURITooLong {
			t.Errorf("%s: one byte more: %d: %v: %.300s", name, code, err, body)
		}
	}
}

// Events wait for a reader of the log that does not read: not more of them than there
// is room for, however large a client without any rights makes each.
func TestWaitingAuditEventsAreBounded(t *testing.T) {
	for name, change := range map[string]func(*server.Options){
		"built-in policy": func(*server.Options) {},
		"policy in a file": func(o *server.Options) {
			o.Audit.PolicyFile = filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(o.Audit.PolicyFile, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "audit.fifo")
			if err := syscall.Mkfifo(log, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(log, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pipe.Close() })
			r := start(t, func(o *server.Options) {
				o.RecordAudit()
				o.Audit.LogOptions.Path, o.Audit.LogOptions.MaxSize = log, 0
				if o.Audit.LogOptions.BatchOptions.Mode != options.ModeBatch {
					t.Error("events are not written in the background")
				}
				change(o)
			})
			nobody := r.member(t, "nobodies")
			before := heap()
			const address = "2001:db8:1111:2222:3333:4444:5555:6666"
			for range 160 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/namespaces/default/configmaps", nil)
				if err != nil {
					t.Fatal(err)
				}
				// Each address is a text of its own, which the two events share: 1 MB.
				req.Header.Set("X-Forwarded-For", strings.Repeat(address+",", 12_000)+address)
				resp, err := nobody.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusForbidden {
					t.Fatal(resp.Status)
				}
			}
			if grown := int64(heap()-before) >> 20; grown > 120 {
				t.Errorf("the heap has grown by %d MB", grown)
			}
			go func() { _, _ = io.Copy(io.Discard, pipe) }() // lets the server end
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
