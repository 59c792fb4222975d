package server

import (
	"net/http"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/server/endpoints/limit"
)

// Limits of the warnings of one response, in runes: beyond the first each is
// cut to the second, and what then is beyond the first is dropped. Clients and
// proxies bound headers, and kubectl shows warnings to people.
const (
	maxWarnings   = 4096
	maxCutWarning = 256
)

// withWarnings collects the warnings of a request and writes them into the
// headers with the first byte of the answer.
//
// Warnings may come from another goroutine than the one that answers, such as
// an update that goes on after its request has timed out, and headers are not
// made for that: so only the goroutine that answers touches them.
//
// The same writer guards against clients that do not read: a second one would be
// two more allocations for every request.
func withWarnings(handler http.Handler, writes *limit.Writes) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		warnings := &warningRecorder{}
		writer := &warningWriter{ResponseWriter: w, warnings: warnings}
		writer.guard.Watch(w, writes)
		defer writer.guard.Done()
		req = req.WithContext(warning.WithWarningRecorder(req.Context(), warnings))
		handler.ServeHTTP(responsewriter.WrapForHTTP1Or2(writer), req)
		writer.seal() // an answer without a body
	})
}

// warningRecorder implements warning.Recorder.
type warningRecorder struct {
	mu     sync.Mutex
	list   []recordedWarning
	known  map[string]struct{} // the texts of list
	runes  int                 // of list
	cut    int                 // runes of list if each is cut
	sealed bool
}

type recordedWarning struct{ agent, text string }

// AddWarning implements warning.Recorder.
func (r *warningRecorder) AddWarning(agent, text string) {
	if text == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed || r.cut >= maxWarnings {
		return // even if all are cut, no more is written
	}
	if _, known := r.known[text]; known {
		return
	}
	if r.known == nil {
		r.known = map[string]struct{}{}
	}
	r.known[text] = struct{}{}
	r.list = append(r.list, recordedWarning{agent, text})
	runes := utf8.RuneCountInString(text)
	r.runes += runes
	r.cut += min(runes, maxCutWarning)
}

// seal returns the warnings, once; later ones are dropped.
func (r *warningRecorder) seal() (list []recordedWarning, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.list, r.known, r.sealed = r.list, nil, nil, true
	return list, r.runes > maxWarnings
}

// warningWriter writes the warnings before the answer.
type warningWriter struct {
	http.ResponseWriter
	warnings *warningRecorder
	done     bool
	guard    limit.Guard
}

var _ responsewriter.UserProvidedDecorator = (*warningWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *warningWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *warningWriter) WriteHeader(code int) {
	w.seal()
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *warningWriter) Write(data []byte) (int, error) {
	w.seal()
	return w.guard.Write(data)
}

// Flush implements http.Flusher.
func (w *warningWriter) Flush() {
	w.seal()
	w.guard.Flush()
}

// seal writes the warnings into the headers.
func (w *warningWriter) seal() {
	if w.done {
		return
	}
	w.done = true
	list, cut := w.warnings.seal()
	for _, each := range list {
		text := each.text
		if cut {
			text = firstRunes(text, maxCutWarning)
		}
		header, err := utilnet.NewWarningHeader(299, each.agent, text)
		if err != nil {
			continue // not UTF-8: nothing that could be sent
		}
		w.Header().Add("Warning", header)
	}
}

// firstRunes returns at most the first n runes of a text.
func firstRunes(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}
