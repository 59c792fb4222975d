package token

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/endpoints"
)

// A Getter looks up the objects that tokens are bound to. Callers do not change them.
type Getter interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Stores look up service accounts and secrets in their storages. Until Bind is called,
// all tokens are rejected.
type Stores struct {
	bound atomic.Pointer[storages]
}

type storages struct{ accounts, secrets rest.Getter }

// Bind sets the stores of service accounts and secrets.
func (s *Stores) Bind(accounts, secrets rest.Getter) {
	s.bound.Store(&storages{accounts: accounts, secrets: secrets})
}

// Cached looks up objects in the watch cache, if there is one. It may be behind.
func (s *Stores) Cached() Getter { return storeGetter{s, metav1.GetOptions{ResourceVersion: "0"}} }

// Live looks up objects in etcd.
func (s *Stores) Live() Getter { return storeGetter{s, metav1.GetOptions{}} }

// storeGetter implements Getter, with reads from the cache or from etcd.
type storeGetter struct {
	stores  *Stores
	options metav1.GetOptions
}

// ServiceAccount implements Getter.
func (v storeGetter) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return get[*corev1.ServiceAccount](ctx, v, "serviceaccounts", func(s *storages) rest.Getter { return s.accounts }, namespace, name)
}

// Secret implements Getter.
func (v storeGetter) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get[*corev1.Secret](ctx, v, "secrets", func(s *storages) rest.Getter { return s.secrets }, namespace, name)
}

func get[T runtime.Object](ctx context.Context, v storeGetter, plural string, from func(*storages) rest.Getter, namespace, name string) (found T, err error) {
	bound := v.stores.bound.Load()
	if bound == nil {
		return found, errors.New("service accounts cannot be looked up yet: the server is starting")
	}
	options := v.options
	obj, err := from(bound).Get(endpoints.Within(ctx, corev1.Resource(plural), namespace), name, &options)
	if err != nil {
		return found, err
	}
	found, ok := obj.(T)
	if !ok {
		return found, fmt.Errorf("%s/%s is stored as a %T", namespace, name, obj)
	}
	return found, nil
}

// exists rejects a token whose service account or secret is deleted, or is another one
// of the same name. An object marked for deletion counts as deleted a minute later, so
// that a controller can finish its work.
func (c *claims) exists(ctx context.Context, getter Getter, now time.Time) error {
	deadline := now.Add(-jwt.DefaultLeeway)
	namespace, account := c.Bound.Namespace, c.Bound.Account
	found, err := getter.ServiceAccount(ctx, namespace, account.Name)
	switch {
	case err != nil:
		return err
	case deletedBefore(found, deadline):
		return fmt.Errorf("service account %s/%s has been deleted", namespace, account.Name)
	case string(found.UID) != account.UID:
		return fmt.Errorf("service account UID (%s) does not match claim (%s)", found.UID, account.UID)
	}
	if c.Bound.Secret == nil {
		return nil
	}
	secret, err := getter.Secret(ctx, namespace, c.Bound.Secret.Name)
	switch {
	case err != nil || deletedBefore(secret, deadline):
		return errors.New("service account token has been invalidated")
	case string(secret.UID) != c.Bound.Secret.UID:
		return fmt.Errorf("secret UID (%s) does not match service account secret ref claim (%s)", secret.UID, c.Bound.Secret.UID)
	}
	return nil
}

func deletedBefore(obj metav1.Object, deadline time.Time) bool {
	deleted := obj.GetDeletionTimestamp()
	return deleted != nil && deleted.Time.Before(deadline)
}
