package archive_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/archive"
)

// file is a whole archive.
func file(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Header{Tenant: "shop", Spec: []byte(`{"requests":20}`)})
	if err != nil {
		tb.Fatal(err)
	}
	for _, o := range [][2]string{
		{archive.CRDs, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.com"}}`},
		{"configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"<x>"},"data":{"<":">&"}}`},
		{"configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"b","name":"a"}}`},
		{"namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}` + "\n"},
	} {
		if err := w.Write(o[0], []byte(o[1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(archive.End{Expiring: 3}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// read returns the objects of an archive.
func read(from io.Reader) (objects []string, end archive.End, err error) {
	r, err := archive.NewReader(from)
	if err != nil {
		return nil, end, err
	}
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return objects, r.End(), nil
		}
		if err != nil {
			return objects, r.End(), err
		}
		objects = append(objects, record.Resource+" "+record.Namespace+"/"+record.Name+" "+string(record.Object))
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	objects, end, err := read(bytes.NewReader(file(t)))
	if err != nil || end.Objects != 4 || end.Expiring != 3 || len(objects) != 4 {
		t.Fatal(objects, end, err)
	}
	if want := `configmaps a/<x> {"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"<x>"},"data":{"<":">&"}}`; objects[1] != want {
		t.Errorf("got  %s\nwant %s", objects[1], want)
	}
}

// Every file that is cut off, or in which a bit has changed, is refused.
func TestDamage(t *testing.T) {
	t.Parallel()
	whole := file(t)
	all, _, err := read(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, _, err := read(bytes.NewReader(whole[:n])); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("the first %d bytes of %d: %v", n, len(whole), err)
		}
	}
	const headerOfGzip = 10 // with a time and the system, which mean nothing
	for at := headerOfGzip; at < len(whole); at++ {
		for bit := range 8 {
			changed := bytes.Clone(whole)
			changed[at] ^= 1 << bit
			// gzip has a few bits that mean nothing.
			if objects, _, err := read(bytes.NewReader(changed)); err == nil && !slices.Equal(objects, all) {
				t.Errorf("bit %d of byte %d: no error", bit, at)
			}
		}
	}
	if _, _, err := read(bytes.NewReader(append(bytes.Clone(whole), 0))); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

// An error of the source is not one of the file.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	_, _, err := read(io.MultiReader(bytes.NewReader(file(t)[:100]), failing{broken}))
	if !errors.Is(err, broken) || errors.Is(err, archive.ErrDamaged) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A server that fails says why.
func TestFailed(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Fail(errors.New("etcd is away")); err != nil {
		t.Fatal(err)
	}
	var failed *archive.FailedError
	if _, _, err := read(&b); !errors.As(err, &failed) || failed.Why != "etcd is away" {
		t.Error(err)
	}
}

// zipped compresses text.
func zipped(tb testing.TB, text io.Reader) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// What is small in the file and large when it is decompressed is refused before it takes memory.
func TestBomb(t *testing.T) {
	t.Parallel()
	header := `{"format":"espalier.dev/tenant","version":1}` + "\n"
	long := zipped(t, io.MultiReader(strings.NewReader(header), io.LimitReader(zeros{}, 200<<20)))
	if _, _, err := read(bytes.NewReader(long)); err == nil || !strings.Contains(err.Error(), "line of more than 32 MiB") {
		t.Error(err)
	}
	if _, _, err := read(bytes.NewReader(zipped(t, io.LimitReader(zeros{}, 200<<20)))); err == nil || !strings.Contains(err.Error(), "line of more than 1 MiB") {
		t.Error(err)
	}
	if _, _, err := read(bytes.NewReader(zipped(t, strings.NewReader(`{"format":"espalier.dev/tenant","version":2}`+"\n")))); err == nil || !strings.Contains(err.Error(), "a later one") {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// FuzzReader finds files that make the reader panic, or that it reads and the writer writes in another way.
func FuzzReader(f *testing.F) {
	f.Add(file(f), false)
	for _, text := range []string{
		`{"format":"espalier.dev/tenant","version":1}` + "\n" + `{"end":{"objects":0,"sha256":""}}` + "\n",
		`{"format":"espalier.dev/tenant","version":1}` + "\n" + `{"resource":"a","object":{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}}` + "\n",
		`{"format":"espalier.dev/tenant","version":1}` + "\n" + `{"failed":"x"}` + "\n",
	} {
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, zip bool) {
		if zip {
			data = zipped(t, bytes.NewReader(data))
		}
		objects, end, err := read(bytes.NewReader(data))
		if err == nil && int64(len(objects)) != end.Objects {
			t.Errorf("%d objects, and the end says %d", len(objects), end.Objects)
		}
	})
}
