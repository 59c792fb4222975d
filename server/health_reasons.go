package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/auth/authentication"
)

// withheld is what k8s.io/apiserver answers instead of the reason of a failed check: the
// health paths are public.
const withheld = " failed: reason withheld\n"

// withReasons puts the reasons of failed checks into the answers of the health
// paths, and warnings into verbose ones, for users who may read the path of the
// single check: /readyz/etcd has the reason in Kubernetes too. Others, anonymous users
// among them, see what they see in Kubernetes.
func (s *signals) withReasons(handler http.Handler, may authorizer.Authorizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !authentication.IsHealth(req.URL.Path) || req.Method != http.MethodGet {
			handler.ServeHTTP(w, req)
			return
		}
		answer := &heldAnswer{header: w.Header()}
		handler.ServeHTTP(answer, req)
		text := answer.body.String()
		_, verbose := req.URL.Query()["verbose"]
		if strings.Contains(text, withheld) || verbose {
			text = s.reasons(handler, may, req, text)
			w.Header().Del("Content-Length")
		}
		if answer.code != 0 {
			w.WriteHeader(answer.code)
		}
		_, _ = w.Write([]byte(text)) // a client that has gone needs no answer
	})
}

// reasons replaces what is withheld from the user.
func (s *signals) reasons(handler http.Handler, may authorizer.Authorizer, req *http.Request, text string) string {
	var out strings.Builder
	refused := false // one refusal is enough: authorizers may be far away
	for line := range strings.Lines(text) {
		name, ok := strings.CutSuffix(line, withheld)
		name, failed := strings.CutPrefix(name, "[-]")
		if !ok || !failed || refused {
			out.WriteString(line)
			continue
		}
		if refused = !allowed(req, may, name); refused {
			out.WriteString(line)
			continue
		}
		single := req.Clone(req.Context())
		single.URL = &url.URL{Path: req.URL.Path + "/" + name}
		answer := &heldAnswer{header: http.Header{}}
		handler.ServeHTTP(answer, single)
		reason := strings.TrimPrefix(strings.TrimSpace(answer.body.String()), "internal server error: ")
		fmt.Fprintf(&out, "[-]%s failed: %s\n", name, strings.ReplaceAll(reason, "\n", " "))
	}
	if warnings := s.etcdWarnings(); !refused && warnings != "" && allowed(req, may, "etcd") {
		out.WriteString(warnings)
	}
	return out.String()
}

// allowed reports whether the user may read the path of a single check.
func allowed(req *http.Request, may authorizer.Authorizer, check string) bool {
	who, ok := request.UserFrom(req.Context())
	if !ok || slices.Contains(who.GetGroups(), user.AllUnauthenticated) {
		return false // without asking the authorizer, however often such clients come
	}
	decision, _, err := may.Authorize(req.Context(), authorizer.AttributesRecord{User: who, Verb: "get", Path: req.URL.Path + "/" + check})
	return err == nil && decision == authorizer.DecisionAllow
}

// heldAnswer is an answer of a health path: a line for each of some dozen checks.
type heldAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (h *heldAnswer) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heldAnswer) WriteHeader(code int) {
	if h.code == 0 {
		h.code = code
	}
}

// Write implements http.ResponseWriter.
func (h *heldAnswer) Write(data []byte) (int, error) { return h.body.Write(data) }
