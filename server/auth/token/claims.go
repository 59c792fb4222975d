package token

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	authenticationjwt "k8s.io/apiserver/pkg/authentication/token/jwt"
	"k8s.io/apiserver/pkg/authentication/user"
)

// claims are the claims of a token. The standard ones are in jwt.Claims.
type claims struct {
	jwt.Claims
	private
}

// private are the claims that only Kubernetes' tokens have.
type private struct {
	Bound bound `json:"kubernetes.io,omitzero"`
}

// bound is what a token ends with.
type bound struct {
	Namespace string           `json:"namespace,omitempty"`
	Secret    *reference       `json:"secret,omitempty"`
	Account   reference        `json:"serviceaccount,omitzero"`
	WarnAfter *jwt.NumericDate `json:"warnafter,omitempty"`
}

// reference is an object, and no other one of the same name.
type reference struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// members are the names of what bound has.
var members = []string{"namespace", "secret", "serviceaccount", "warnafter"}

// others are the members of kubernetes.io, whatever they are.
type others struct {
	Bound map[string]any `json:"kubernetes.io"`
}

// check refuses tokens that are bound to something else: pods, nodes and what may
// come. There are none here, so they are gone.
func (o others) check() error {
	for _, name := range slices.Sorted(maps.Keys(o.Bound)) {
		if !slices.Contains(members, name) {
			return fmt.Errorf("service account token is bound to a %s, but this server has no %[1]ss", name)
		}
	}
	return nil
}

// complete rejects tokens without the required claims. A token without expiry would be
// valid for ever, and one without audiences for all of them.
func (c *claims) complete() error {
	switch {
	case c.Expiry == nil:
		return errors.New("service account token has no expiry")
	case len(c.Audience) == 0:
		return errors.New("service account token has no audience")
	case c.Bound.Namespace == "" || c.Bound.Account.Name == "" || c.Bound.Account.UID == "":
		return errors.New("service account token names no service account")
	case c.Subject != serviceaccount.MakeUsername(c.Bound.Namespace, c.Bound.Account.Name):
		return fmt.Errorf("service account token is about %q and names the service account %s/%s", c.Subject, c.Bound.Namespace, c.Bound.Account.Name)
	}
	return nil
}

// inTime refuses what has expired and what has not begun. Clocks may differ by the
// library's minute.
func (c *claims) inTime(now time.Time) error {
	err := c.Validate(jwt.Expected{Time: now})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrExpired):
		return errors.New("service account token has expired")
	case errors.Is(err, jwt.ErrNotValidYet):
		return errors.New("service account token is not valid yet")
	case errors.Is(err, jwt.ErrIssuedInTheFuture):
		return errors.New("service account token is issued in the future")
	}
	return fmt.Errorf("service account token claims could not be validated: %w", err)
}

// user is who the token speaks for.
func (c *claims) user() user.Info {
	info := serviceaccount.ServiceAccountInfo{
		Namespace: c.Bound.Namespace, Name: c.Bound.Account.Name, UID: c.Bound.Account.UID,
		CredentialID: authenticationjwt.CredentialIDForJTI(c.ID),
	}
	return info.UserInfo()
}
