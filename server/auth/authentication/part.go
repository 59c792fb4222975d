package authentication

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/espalier-dev/espalier/server/auth/token"
)

// A Part is a part of a server with service accounts of its own. Its tokens are signed with
// the keys of the server, by an issuer of its own: they are for this part alone.
type Part struct {
	// Path is where the part is in the URLs of the server, as /clusters/one.
	Path string
	// Cached and Live look up the objects that tokens are bound to.
	Cached, Live token.Getter
}

// Part returns the authentication of a part. It knows the service accounts of the part and
// no other users: the caller decides which of them may come in.
func (a *Authentication) Part(p Part) (*Authentication, error) {
	issuer, err := a.Issuer.Like(a.issuing(p))
	if err != nil {
		return nil, err
	}
	bearers := authenticator.TokenFunc(func(ctx context.Context, data string) (*authenticator.Response, bool, error) {
		return withAuthenticatedGroup(issuer.AuthenticateToken(ctx, data))
	})
	return &Authentication{
		Authenticator: bearing(bearers),
		Audiences:     issuer.Audiences(), Issuer: issuer, Keys: a.Keys,
	}, nil
}

// bearing authenticates requests by their tokens, wherever these are.
func bearing(tokens authenticator.Token) authenticator.Request {
	return union.New(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
}

// onlyUsers authenticates users, and tokens that are for one of the audiences. A service
// account is none, also if another authenticator knows it: a proxy or a webhook may know those of the server.
func onlyUsers(next authenticator.Request, audiences authenticator.Audiences) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(req.WithContext(authenticator.WithAudiences(req.Context(), audiences)))
		if err != nil || !ok {
			return nil, false, err
		}
		if len(response.Audiences) > 0 && len(audiences.Intersect(response.Audiences)) == 0 {
			return nil, false, nil
		}
		if _, _, err := serviceaccount.SplitUsername(response.User.GetName()); err == nil {
			return nil, false, nil
		}
		return response, true, nil
	})
}

// except authenticates by tokens that do not claim to be of an issuer.
func except(issuer *token.Issuer, next authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, data string) (*authenticator.Response, bool, error) {
		if issuer.Named(data) {
			return nil, false, nil
		}
		return next.AuthenticateToken(ctx, data)
	})
}

// Signed reports whether a request has a token that the keys of the server have signed for
// a part, and that is valid now. It does not look whether the service account still exists.
func (a *Authentication) Signed(req *http.Request, path string) bool {
	issuer, err := a.Issuer.Like(a.issuing(Part{Path: path, Live: (&token.Stores{}).Live()}))
	if err != nil {
		return false
	}
	signed := false
	// It authenticates no user, so that the request keeps its tokens.
	_, _, _ = bearing(authenticator.TokenFunc(func(_ context.Context, data string) (*authenticator.Response, bool, error) {
		signed = signed || issuer.Signed(data)
		return nil, false, nil
	})).AuthenticateRequest(req)
	return signed
}

// issuing are the options of the issuer of a part.
func (a *Authentication) issuing(p Part) token.Options {
	o := a.options
	names := make([]string, len(o.Issuers)) // the first one signs
	for i, name := range o.Issuers {
		names[i] = strings.TrimSuffix(name, "/") + p.Path
	}
	o.Issuers, o.Audiences = names, names
	o.Cached, o.Live = p.Cached, p.Live
	if u, err := url.Parse(o.JWKSURI); err == nil && o.JWKSURI != "" {
		u.Path = p.Path + token.KeysPath
		o.JWKSURI = u.String()
	}
	return o
}
