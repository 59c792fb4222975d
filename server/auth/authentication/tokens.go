package authentication

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/klog/v2"
)

// tokens of a file.
type tokens struct {
	path    string
	current atomic.Pointer[tokenfile.TokenAuthenticator]
	// Of what was read last; only reload looks at them.
	source    [sha256.Size]byte
	complaint complaint
}

func newTokens(path string) (*tokens, error) {
	t := &tokens{path: path}
	return t, t.read()
}

// AuthenticateToken implements authenticator.Token.
func (t *tokens) AuthenticateToken(ctx context.Context, data string) (*authenticator.Response, bool, error) {
	return t.current.Load().AuthenticateToken(ctx, data)
}

// reload reads the file if it has changed.
func (t *tokens) reload(context.Context) {
	data, err := os.ReadFile(t.path)
	if err == nil && sha256.Sum256(data) == t.source {
		return
	}
	err = t.read()
	if err == nil {
		klog.InfoS("Reloaded the token file", "file", t.path)
	}
	t.complaint.log(err, "The new token file is not used, the former one is kept")
}

func (t *tokens) read() error {
	data, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	next, err := tokenfile.NewCSV(t.path)
	if err != nil {
		return err
	}
	// If the file has changed in between, it is read again next time.
	t.source = sha256.Sum256(data)
	t.current.Store(next)
	return nil
}

// unexpired rejects tokens that expire while their verification is cached.
type unexpired struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (u unexpired) AuthenticateToken(ctx context.Context, data string) (*authenticator.Response, bool, error) {
	response, ok, err := u.Token.AuthenticateToken(ctx, data)
	if ok && err == nil && expired(data, time.Now()) {
		return nil, false, errors.New("the token has expired")
	}
	return response, ok, err
}

// expired reads the expiry of a JSON Web Token whose signature is known to be good.
func expired(data string, now time.Time) bool {
	parts := strings.Split(data, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var said struct {
		Expiry float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &said); err != nil {
		return false
	}
	return said.Expiry > 0 && float64(now.Unix()) > said.Expiry
}

// withAuthenticatedGroup passes on the answer of an authenticator. Authenticated users get
// the group system:authenticated.
func withAuthenticatedGroup(response *authenticator.Response, ok bool, err error) (*authenticator.Response, bool, error) {
	if !ok || err != nil {
		return nil, false, err
	}
	return authenticated(response), true, nil
}
