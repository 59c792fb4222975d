package sitetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
)

// Site is a handler over a catalog that follows a storage of definitions.
type Site struct {
	Definitions *catalogtest.Definitions
	Catalog     *catalog.Catalog
	URL         string
}

// Open returns a site without a handler. Its catalog is not running yet.
func Open(t testing.TB) *Site {
	t.Helper()
	s := &Site{Definitions: catalogtest.Open(t)}
	s.Catalog = catalog.New(s.Definitions.Storage)
	return s
}

// Serve puts a handler on the site, in place of the one before.
func (s *Site) Serve(t testing.TB, handler http.Handler) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.URL = server.URL
}

// Run lets the catalog follow the storage, and waits until it knows it.
func (s *Site) Run(t testing.TB) {
	t.Helper()
	go func() { _ = s.Catalog.Run(t.Context()) }()
	<-s.Catalog.Synced()
}

// Create writes definitions and waits until the catalog has seen them.
func (s *Site) Create(t testing.TB, definitions ...string) {
	t.Helper()
	for _, d := range definitions {
		s.Settle(t, s.Definitions.Create(t, d))
	}
}

// Settle waits until the catalog has seen o.
func (s *Site) Settle(t testing.TB, o *object.Object) {
	t.Helper()
	revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Catalog.WaitFor(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
}

// Answer is a response, read to its end.
type Answer struct {
	*http.Response
	Content []byte
}

// Do sends a request without following redirects; headers are pairs.
func (s *Site) Do(t testing.TB, method, path string, headers ...string) Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{resp, content}
}
