package token

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/lru"
)

const (
	// maxToken bounds the length of a token: that of a service account has about a
	// kilobyte, and each audience adds to it.
	maxToken = 32 << 10
	// maxVerified bounds what is remembered.
	maxVerified = 4096
)

// Options are what an Issuer is made of.
type Options struct {
	Keys *Keys
	// Issuers are whose tokens are accepted; the first one is who signs.
	Issuers []string
	// Audiences are the names of this server. A token must be for one of them, and
	// is for all of them if the request for it does not say.
	Audiences authenticator.Audiences
	// MaxExpiration is the longest that a token is issued for; 0 sets no limit.
	MaxExpiration time.Duration
	// Live looks up what is there now. Cached, if not nil, is asked first.
	Cached, Live Getter
	// JWKSURI is where others find the public keys: an https URL. If it is empty,
	// there are no documents for them.
	JWKSURI string
}

// Issuer issues tokens, and verifies them.
type Issuer struct {
	options  Options
	verified *lru.Cache // by the sum of a token: what is remembered of it
	now      func() time.Time
}

// remembered is a token whose signature is good.
type remembered struct {
	keys   *keySet // that it was verified with
	claims *claims
}

var _ authenticator.Token = (*Issuer)(nil)

// New returns an issuer.
func New(o Options) (*Issuer, error) {
	switch {
	case o.Keys == nil || o.Keys.signing == "":
		return nil, errors.New("an issuer of tokens needs a key that signs")
	case len(o.Issuers) == 0 || slices.Contains(o.Issuers, ""):
		return nil, errors.New("an issuer of tokens needs a name")
	case len(o.Audiences) == 0:
		return nil, errors.New("an issuer of tokens needs an audience")
	case o.Live == nil:
		return nil, errors.New("an issuer of tokens needs to look up service accounts")
	}
	return &Issuer{options: o, verified: lru.New(maxVerified), now: time.Now}, nil
}

// Like returns an issuer with other options. A signature that either has verified with the
// keys of both is not verified again.
func (i *Issuer) Like(o Options) (*Issuer, error) {
	like, err := New(o)
	if err != nil {
		return nil, err
	}
	like.verified, like.now = i.verified, i.now
	return like, nil
}

// Order says which token is wanted.
type Order struct {
	Account   *corev1.ServiceAccount
	Secret    *corev1.Secret // that the token ends with; nil if there is none
	Audiences []string
	Lifetime  time.Duration
}

// Issued is a token.
type Issued struct {
	Token   string
	ID      string // not secret: names the token in audit logs
	Expires time.Time
}

// errTooLong is about a token that this server would not accept itself.
var errTooLong = fmt.Errorf("the token would have more than %d bytes", maxToken)

// Issue signs a token.
func (i *Issuer) Issue(o Order) (Issued, error) {
	now := i.now()
	issued := Issued{ID: uuid.NewString(), Expires: now.Add(o.Lifetime)}
	standard := jwt.Claims{
		Issuer:    i.options.Issuers[0],
		Subject:   serviceaccount.MakeUsername(o.Account.Namespace, o.Account.Name),
		Audience:  o.Audiences,
		IssuedAt:  jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now),
		Expiry:    jwt.NewNumericDate(issued.Expires),
		ID:        issued.ID,
	}
	own := private{Bound: bound{
		Namespace: o.Account.Namespace,
		Account:   reference{Name: o.Account.Name, UID: string(o.Account.UID)},
	}}
	if o.Secret != nil {
		own.Bound.Secret = &reference{Name: o.Secret.Name, UID: string(o.Secret.UID)}
	}
	var err error
	issued.Token, err = jwt.Signed(i.options.Keys.current.Load().signer).Claims(own).Claims(standard).CompactSerialize()
	if len(issued.Token) > maxToken {
		return issued, errTooLong
	}
	return issued, err
}

// AuthenticateToken implements authenticator.Token. Tokens of other issuers are
// left to others.
func (i *Issuer) AuthenticateToken(ctx context.Context, data string) (*authenticator.Response, bool, error) {
	if len(data) > maxToken {
		return nil, false, nil
	}
	c, err := i.recall(data)
	if c == nil || err != nil {
		return nil, false, err
	}
	audiences, err := i.audiences(ctx, c)
	if err != nil {
		return nil, false, err
	}
	now := i.now()
	if err := c.inTime(now); err != nil {
		return nil, false, err
	}
	if err := i.exists(ctx, c, now); err != nil {
		return nil, false, err
	}
	i.annotate(ctx, c, now)
	return &authenticator.Response{User: c.user(), Audiences: audiences}, true, nil
}

// Signed reports whether a token is one of this issuer, for one of its audiences, and in
// time. What it is bound to may be gone.
func (i *Issuer) Signed(data string) bool {
	if len(data) > maxToken {
		return false
	}
	c, err := i.recall(data)
	if c == nil || err != nil {
		return false
	}
	_, err = i.audiences(context.Background(), c)
	return err == nil && c.inTime(i.now()) == nil
}

// Named reports whether a token says that it is one of this issuer, whether or not it is.
func (i *Issuer) Named(data string) bool { return i.ours(data) }

// Audiences are the names of this server.
func (i *Issuer) Audiences() authenticator.Audiences { return i.options.Audiences }

// recall returns what a token says, if its signature is good; nil if it is none of
// ours. A good signature is remembered for as long as the keys stay.
func (i *Issuer) recall(data string) (*claims, error) {
	keys := i.options.Keys.current.Load()
	sum := sha256.Sum256([]byte(data))
	if value, ok := i.verified.Get(sum); ok {
		if entry, ok := value.(remembered); ok && entry.keys == keys {
			if !slices.Contains(i.options.Issuers, entry.claims.Issuer) {
				return nil, nil
			}
			return entry.claims, nil
		}
	}
	if !i.ours(data) {
		return nil, nil
	}
	c, err := i.verify(keys, data)
	if err != nil {
		return nil, err
	}
	i.verified.Add(sum, remembered{keys: keys, claims: c})
	return c, nil
}

// ours reports whether a token says that it is of one of our issuers. What it says
// is not to be believed yet.
func (i *Issuer) ours(data string) bool {
	parts := strings.Split(data, ".")
	if len(parts) != 3 || strings.ContainsAny(data, "\r\n") { // the decoder skips these
		return false
	}
	var payload []byte
	for n, part := range parts {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil {
			return false
		}
		if n == 1 {
			payload = decoded
		}
	}
	var said struct {
		Issuer string `json:"iss"`
	}
	return json.Unmarshal(payload, &said) == nil && slices.Contains(i.options.Issuers, said.Issuer)
}

// verify checks a signature, and that the token is one of a service account.
func (i *Issuer) verify(keys *keySet, data string) (*claims, error) {
	parsed, err := jwt.ParseSigned(data)
	if err != nil {
		return nil, fmt.Errorf("invalid token: %w", err)
	}
	if len(parsed.Headers) != 1 {
		return nil, errors.New("invalid token: it has no single signature")
	}
	header := parsed.Headers[0]
	err = errors.New("invalid signature, no keys found")
	for _, k := range keys.candidates(header.KeyID) {
		if jose.SignatureAlgorithm(header.Algorithm) != k.algorithm {
			err = fmt.Errorf("invalid signature, the algorithm %q is not that of the key", header.Algorithm)
			continue
		}
		var c claims
		var rest others
		if err = parsed.Claims(k.public, &c.Claims, &c.private, &rest); err != nil {
			continue
		}
		if !slices.Contains(i.options.Issuers, c.Issuer) {
			return nil, fmt.Errorf("token issuer %q is invalid", c.Issuer)
		}
		return &c, errors.Join(c.complete(), rest.check())
	}
	return nil, err
}

// audiences are those that the token is for and the request wants.
func (i *Issuer) audiences(ctx context.Context, c *claims) (authenticator.Audiences, error) {
	wanted, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		wanted = i.options.Audiences
	}
	audiences := authenticator.Audiences(c.Audience).Intersect(wanted)
	if len(audiences) == 0 {
		return nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", c.Audience, wanted)
	}
	return audiences, nil
}

// exists asks the cache, if there is one, and the live store before it says no: the
// cache may not know what was created a moment ago.
func (i *Issuer) exists(ctx context.Context, c *claims, now time.Time) error {
	if i.options.Cached != nil && c.exists(ctx, i.options.Cached, now) == nil {
		return nil
	}
	return c.exists(ctx, i.options.Live, now)
}

// annotate notes tokens that should have been replaced.
func (i *Issuer) annotate(ctx context.Context, c *claims, now time.Time) {
	after := c.Bound.WarnAfter
	if after == nil || *after == 0 || !now.After(after.Time()) {
		return
	}
	audit.AddAuditAnnotation(ctx, "authentication.k8s.io/stale-token",
		fmt.Sprintf("subject: %s, seconds after warning threshold: %d", c.Subject, now.Unix()-after.Time().Unix()))
}

// KeyIDs returns the identifiers of the key that signs and of all that verify, as
// they are now. The identifiers are public: tokens have them.
func (i *Issuer) KeyIDs() (signing string, all []string) {
	set := i.options.Keys.current.Load()
	for _, k := range set.all {
		all = append(all, k.id)
	}
	return set.all[0].id, all // the first one is the one that signs
}
