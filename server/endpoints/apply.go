package endpoints

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// largeApply is the size of an apply that takes its turn. A MB takes about a
// second of CPU to be read as YAML, which all applies are, and more to be merged.
const largeApply = 128 << 10

// appliers bounds how many large applies run at a time: half of the processors
// stay for others.
var appliers = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// inTurn bounds how many large applies and strategic merge patches run at a time. It
// rejects large JSON with too many fields before it is parsed as YAML, and patches of any
// size that own, which may be nil, rejects.
func inTurn(limit int64, own func([]byte) error, handler http.HandlerFunc) http.HandlerFunc {
	if limit <= 0 {
		limit = DefaultMaxRequestBodyBytes
	}
	return func(w http.ResponseWriter, req *http.Request) {
		// As the handler reads it, which does not look at parameters.
		kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
		var check func([]byte) error
		switch types.PatchType(kind) {
		case types.ApplyYAMLPatchType:
			check = fieldmanager.CheckJSON
		case types.StrategicMergePatchType:
			check = fieldmanager.CheckManaged
		}
		if check == nil || own == nil && req.ContentLength >= 0 && req.ContentLength < largeApply {
			handler(w, req)
			return
		}
		body, failed := io.ReadAll(io.LimitReader(req.Body, limit+1))
		again := *req
		again.Body = readCloser{io.MultiReader(bytes.NewReader(body), failing{failed}), req.Body}
		if failed != nil || int64(len(body)) > limit {
			handler(w, &again) // the handler reports the error
			return
		}
		large := len(body) >= largeApply
		var err error
		if large {
			err = check(body)
		}
		if err == nil && own != nil {
			err = own(body)
		}
		if err != nil {
			reply.Error(w, req, err)
			return
		}
		if !large {
			handler(w, &again)
			return
		}
		select {
		case appliers <- struct{}{}:
		case <-req.Context().Done():
			fail(w, req, false, req.Context().Err())
			return
		}
		defer func() { <-appliers }()
		handler(w, &again)
	}
}

// readCloser is the rest of a body that was begun.
type readCloser struct {
	io.Reader
	io.Closer
}

// failing ends as the body did that was read.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
