package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	handler, err := New(sites, "v1")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// post sends a form, and returns the page.
func post(t *testing.T, server *httptest.Server, form url.Values) (int, string) {
	t.Helper()
	answer, err := http.PostForm(server.URL, form)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestForm(t *testing.T) {
	answer, err := http.Get(serve(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<input id="metadata.name" name="metadata.name" value="">`,
		`<label for="spec.host">spec.host * <small>Where visitors find the site.`,
		`<textarea id="spec.aliases"`, `<option>everything</option>`, `<select id="spec.tls.redirect"`, "Default: 2.",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the form has no %s:\n%s", want, text)
		}
	}
}

func TestGood(t *testing.T) {
	status, text := post(t, serve(t), url.Values{
		"metadata.name": {"shop"}, "spec.host": {"shop.example.com"}, "spec.aliases": {"www.example.com\r\nexample.org"},
		"spec.limit": {"5"}, "spec.tls.redirect": {"true"}, "spec.unknown": {"x"},
	})
	const want = `<pre>apiVersion: example.com/v1
kind: Site
metadata:
  name: shop
  namespace: default
spec:
  aliases:
  - www.example.com
  - example.org
  cache: images
  host: shop.example.com
  limit: 5
  replicas: 2
  tls:
    redirect: true
</pre>`
	if status != http.StatusOK || !strings.Contains(text, want) {
		t.Errorf("%d %s", status, text)
	}
}

// Each error is after the input that it is about, and before the next one.
func TestErrorsAreAtTheirFields(t *testing.T) {
	server := serve(t)
	for _, test := range []struct{ field, value, want string }{
		{"metadata.name", "", "Required value"},
		{"metadata.name", "My Shop", "Invalid value"},
		{"spec.host", "", "Required value"},
		{"spec.host", "no host", "should match"},
		{"spec.aliases", "www.example.com www.example.com", "Duplicate value"},
		{"spec.aliases", "www.example.com ?", "should match"},
		{"spec.replicas", "three", "must be of type integer"},
		{"spec.limit", "30", "Invalid value: spec.limit in body should be less than or equal to 10"},
		{"spec.replicas", "1e999999999", "must be of type integer"},
		{"spec.replicas", "5", "the site must not begin with more servers than it may have"},
		{"spec.cache", "some", "Unsupported value"},
		{"spec.tls.redirect", "maybe", "must be of type boolean"},
	} {
		t.Run(test.field+" "+test.value, func(t *testing.T) {
			values := url.Values{"metadata.name": {"shop"}, "spec.host": {"shop.example.com"}}
			values.Set(test.field, test.value)
			status, text := post(t, server, values)
			_, after, _ := strings.Cut(text, `name="`+test.field+`"`)
			at, _, _ := strings.Cut(after, "<label")
			if status != http.StatusUnprocessableEntity || !strings.Contains(at, `<p class="error">`) || !strings.Contains(at, test.want) {
				t.Errorf("%d: no %q at the field:\n%s", status, test.want, text)
			}
			_, form, _ := strings.Cut(text, "<form")
			if n := strings.Count(form, `class="error"`); n != 1 {
				t.Errorf("%d fields have errors:\n%s", n, text)
			}
		})
	}
}

// What users write stays text, in inputs and in errors.
func TestEscaped(t *testing.T) {
	status, text := post(t, serve(t), url.Values{"metadata.name": {`"><script>alert(1)</script>`}, "spec.cache": {"<b>"}, "spec.host": {"<i>"}})
	if status != http.StatusUnprocessableEntity || !strings.Contains(text, "&lt;script&gt;") {
		t.Errorf("%d %s", status, text)
	}
	for _, tag := range []string{"<script>", "<b>", "<i>"} {
		if strings.Contains(text, tag) {
			t.Errorf("the page has %s:\n%s", tag, text)
		}
	}
}

func TestLargeForm(t *testing.T) {
	status, _ := post(t, serve(t), url.Values{"spec.host": {strings.Repeat("x", maxBytes)}})
	if status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large form is answered with %d", status)
	}
}
