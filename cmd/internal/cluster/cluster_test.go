package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fake puts a script in place of kubectl. Tests with the real one and a real server are in conformance/scenarios.
func fake(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func names(t *testing.T, text string) (string, error) {
	t.Helper()
	var all []string
	err := decode(strings.NewReader(text), func(name string, _ []byte) error {
		all = append(all, name)
		return nil
	})
	return strings.Join(all, " "), err
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{`{"kind":"List","items":[],"metadata":{}}`, "", ""},
		{`{"items":[{"metadata":{"name":"a.x"}},{"metadata":{"name":"b.x"}}],"kind":"List"}`, "a.x b.x", ""},
		{`{"items":[{"metadata":{"name":"a.x"}},{"metadata":{"name":"b`, "a.x", "unexpected EOF"},
		{`{"items":[{"metadata":{}}]}`, "", errNoList.Error()},
		{`{"items":{}}`, "", errNoList.Error()},
		{`{"kind":"List"}`, "", errNoList.Error()},
		{`[]`, "", errNoList.Error()},
		{``, "", errNoList.Error()},
	} {
		got, err := names(t, c.text)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.text, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"items":[{"metadata":{"name":"a.x"}}],"kind":"List"}`)
	f.Add(`{"items":[1]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_ = decode(strings.NewReader(text), func(name string, item []byte) error {
			if name == "" || len(item) == 0 {
				t.Errorf("%q: %q", name, item)
			}
			return nil
		})
	})
}

// What kubectl says on failure is the error, without its log.
func TestErrors(t *testing.T) {
	fake(t, `echo "E1118 10:00:00.0 1 memcache.go:265] \"Unhandled Error\"" >&2; echo 'The connection was refused' >&2; exit 1`)
	err := Read(t.Context(), Source{Context: "far"}, nil)
	if err == nil || err.Error() != "reading the CRDs of the cluster far failed: The connection was refused" {
		t.Error(err)
	}
	fake(t, `echo "E1118 10:00:00.0 only a log" >&2; exit 1`)
	if err := Read(t.Context(), Source{}, nil); err == nil || !strings.Contains(err.Error(), "only a log") {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := Read(t.Context(), Source{}, nil); err == nil || !strings.Contains(err.Error(), "kubectl is not installed, or not in PATH") {
		t.Error(err)
	}
}

// A kubectl that hangs ends with the context, although a program that it has started keeps its output open.
func TestHangingKubectl(t *testing.T) {
	fake(t, "sleep 60 & sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := Read(ctx, Source{}, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*time.Second {
		t.Error(err, time.Since(start))
	}
}

// list has kubectl print CRDs; the server's address is that of the context.
func list(t *testing.T, names ...string) {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q}}`, n))
	}
	fake(t, `case "$1" in config) for a; do case "$a" in --context=*) c=${a#--context=};; esac; done; printf '%s\nhttps://%s' "$c" "$c";; *) echo '{"items":[`+strings.Join(items, ",")+`]}';; esac`)
}

func TestCache(t *testing.T) {
	c := Cache{filepath.Join(t.TempDir(), "clusters")}
	files := func(folder string) string {
		paths, _ := Files(folder)
		var all []string
		for _, p := range paths {
			all = append(all, filepath.Base(p))
		}
		return strings.Join(all, " ")
	}
	list(t, "a.x", "b.x", "../../evil", "")
	src := Source{Context: "team/one"}
	folder, err := c.Folder(t.Context(), src)
	if err != nil || !strings.HasPrefix(filepath.Base(folder), "team-one-") || filepath.Dir(folder) != c.dir {
		t.Fatal(folder, err)
	}
	if _, err := c.Refresh(t.Context(), src, folder); err == nil {
		t.Error("a CRD without a name is read")
	}
	list(t, "a.x", "b.x", "../../evil")
	for _, want := range []bool{false, false} { // the failed read has written them
		if changed, err := c.Refresh(t.Context(), src, folder); err != nil || changed != want || files(folder) != "a.x.json b.x.json" {
			t.Fatal(changed, err, files(folder))
		}
	}
	if text, _ := os.ReadFile(filepath.Join(folder, "a.x.json")); string(text) != "{\n  \"metadata\": {\n    \"name\": \"a.x\"\n  }\n}\n" {
		t.Errorf("%s", text)
	}
	list(t, "a.x")
	if changed, err := c.Refresh(t.Context(), src, folder); err != nil || !changed || files(folder) != "a.x.json" {
		t.Error(changed, err, files(folder))
	}
	// A read that fails deletes nothing.
	fake(t, `echo '{"items":['; exit 1`)
	if _, err := c.Refresh(t.Context(), src, folder); err == nil || files(folder) != "a.x.json" {
		t.Error(err, files(folder))
	}
	// The folders read least recently go.
	list(t, "a.x")
	for i := range maxFolders + 2 {
		s := Source{Context: fmt.Sprint("n", i)}
		f, err := c.Folder(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Refresh(t.Context(), s, f); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(f, old, old); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil || len(entries) != maxFolders || !strings.HasPrefix(entries[0].Name(), "n3-") && !strings.HasPrefix(entries[0].Name(), "n2-") {
		t.Error(entries, err)
	}
}
