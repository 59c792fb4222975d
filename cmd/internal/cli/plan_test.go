package cli

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/manifest"
)

func dumped(t *testing.T, path, mark string) (string, error) {
	t.Helper()
	var all []string
	err := (&App{In: strings.NewReader("")}).dump(path, mark, func(d *manifest.Document) error {
		all = append(all, typeMetaOf(d).object())
		return nil
	})
	return strings.Join(all, " "), err
}

// A list that is larger than other files may be is read object by object.
func TestLargeList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	note := strings.Repeat("x", 1<<20)
	fmt.Fprint(f, `{"apiVersion": "v1", "kind": "List", "items": [`)
	for i := range 35 {
		fmt.Fprintf(f, `%s{"apiVersion": "example.com/v1", "kind": "Cron", "metadata": {"name": "c%d", "namespace": "n"}, "note": %q}`, []string{"", ","}[min(i, 1)], i, note)
	}
	if _, err := io.WriteString(f, `]}`); err != nil {
		t.Fatal(err)
	}
	if got, err := dumped(t, path, ""); err != nil || !strings.HasPrefix(got, "Cron/n/c0 Cron/n/c1 ") || !strings.HasSuffix(got, " Cron/n/c34") {
		t.Error(got, err)
	}
	if err := f.Truncate(34 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := dumped(t, path, ""); err == nil || !strings.Contains(err.Error(), "list.json: read the list: ") {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A backup is an archive with a file for each object.
func TestArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(f)
	archive := tar.NewWriter(packed)
	for _, file := range []struct{ name, text string }{
		{"metadata/version", "1"},
		{"resources/crons.example.com/namespaces/n/a.json", `{"apiVersion":"example.com/v1","kind":"Cron","metadata":{"name":"a","namespace":"n"}}`},
		{"resources/nets.example.com/cluster/b.json", `{"apiVersion":"example.com/v1","kind":"Net","metadata":{"name":"b"}}`},
	} {
		if err := archive.WriteHeader(&tar.Header{Name: file.name, Typeflag: tar.TypeReg, Size: int64(len(file.text)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, file.text); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []io.Closer{archive, packed, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := dumped(t, path, ""); err != nil || got != "Cron/n/a Net/b" {
		t.Error(got, err)
	}
	if got, err := dumped(t, path, "Net"); err != nil || got != "Net/b" {
		t.Error(got, err)
	}
	if err := os.WriteFile(path, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dumped(t, path, ""); err == nil || !strings.Contains(err.Error(), "backup.tar.gz") {
		t.Error(err)
	}
}

// Objects are read in the version of storage, if it is served.
func TestReadVersion(t *testing.T) {
	for want, d := range map[string]crd.CRD{
		"":        {Versions: []crd.Version{{Name: "v1", Storage: true}}},
		"v1":      {Versions: []crd.Version{{Name: "v2", Served: true}, {Name: "v1", Served: true, Storage: true}}},
		"v2":      {Versions: []crd.Version{{Name: "v2beta1", Served: true}, {Name: "v2", Served: true}, {Name: "v1", Storage: true}, {Name: "v1beta1", Served: true}}},
		"v1beta2": {Versions: []crd.Version{{Name: "v1beta1", Served: true}, {Name: "v1beta2", Served: true}, {Name: "v1", Storage: true}}},
	} {
		if got := readVersion(&d); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
