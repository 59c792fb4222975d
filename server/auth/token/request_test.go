package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"
)

// ask sends a token request for the account named robot.
func (f *fixture) ask(ctx context.Context, in *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	obj, err := f.Storage(f.accounts).(rest.NamedCreater).Create(ctx, "robot", in, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*authenticationv1.TokenRequest), nil
}

func lasting(seconds int64) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
}

func bindingTo(ref authenticationv1.BoundObjectReference) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &ref}}
}

func TestTokenRequestDefaults(t *testing.T) {
	f := newFixture(t)
	f.createAccount(t, "robot")
	before := time.Now()
	in := &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "mine"}}
	out, err := f.ask(inNamespace(t), in)
	if err != nil {
		t.Fatal(err)
	}
	f.accepted(t, out.Status.Token)
	if *out.Spec.ExpirationSeconds != 3600 || !slices.Equal(out.Spec.Audiences, []string{testAudience}) {
		t.Errorf("spec %+v", out.Spec)
	}
	if out.Name != "robot" || out.Namespace != namespace || out.CreationTimestamp.IsZero() {
		t.Errorf("metadata %+v", out.ObjectMeta)
	}
	if at := out.Status.ExpirationTimestamp.Time; at.Before(before.Add(time.Hour)) || at.After(time.Now().Add(time.Hour)) {
		t.Errorf("expires %v", at)
	}
}

func TestTokenRequestHasItsSay(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.MaxExpiration = 2 * time.Hour })
	f.createAccount(t, "robot")
	secret := f.createSecret(t, "anchor")
	in := bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "anchor", UID: secret.UID})
	in.Spec.Audiences = []string{"vault", testAudience}
	in.Spec.ExpirationSeconds = ptr.To[int64](3 * 3600)
	var warned warnings
	out, err := f.ask(warning.WithWarningRecorder(inNamespace(t), &warned), in)
	if err != nil {
		t.Fatal(err)
	}
	f.accepted(t, out.Status.Token)
	said := payload(t, out.Status.Token)
	if got := said["exp"].(float64) - said["iat"].(float64); got != 7200 || *out.Spec.ExpirationSeconds != 7200 {
		t.Errorf("lasts %v s, says %d", got, *out.Spec.ExpirationSeconds)
	}
	if !slices.Equal(warned, warnings{"requested expiration of 10800 seconds shortened to 7200 seconds"}) {
		t.Errorf("warnings %q", warned)
	}
	remove(t, f.secrets, "anchor")
	f.refused(t, out.Status.Token, "service account token has been invalidated")
}

// The UID of what a token is bound to may be left out.
func TestBoundWithoutUID(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "anchor", UID: "1"}}
	r := &requests{issuer: &Issuer{options: Options{Live: memory{secret: secret}}}}
	for uid, bound := range map[types.UID]bool{"": true, "1": true, "2": false} {
		ref := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "anchor", UID: uid}
		if got, err := r.secret(t.Context(), namespace, ref); (err == nil) != bound || (got == secret) != bound {
			t.Errorf("UID %q: %v, %v", uid, got, err)
		}
	}
}

type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func TestTokenRequestsThatAreRefused(t *testing.T) {
	f := newFixture(t)
	f.createSecret(t, "anchor")
	if _, err := f.ask(inNamespace(t), lasting(600)); !apierrors.IsNotFound(err) || err.Error() != `serviceaccounts "robot" not found` {
		t.Errorf("without an account: %v", err)
	}
	f.createAccount(t, "robot")
	if _, err := f.ask(inNamespace(t), lasting(600)); err != nil {
		t.Errorf("10 minutes: %v", err)
	}
	named := lasting(600)
	named.Name = "other"
	elsewhere := lasting(600)
	elsewhere.Namespace = "elsewhere"
	attested := lasting(600)
	attested.Spec.Attestations = map[string]authenticationv1.AttestationValue{"x": {"y"}}
	wordy := lasting(600)
	wordy.Spec.Audiences = []string{strings.Repeat("a", maxToken)}
	for name, test := range map[string]struct {
		in   *authenticationv1.TokenRequest
		code int32
		want string
	}{
		"too short":       {lasting(599), 422, `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes`},
		"negative":        {lasting(-1), 422, `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: -1: may not specify a duration less than 10 minutes`},
		"too long":        {lasting(1<<32 + 1), 422, `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds`},
		"another name":    {named, 422, `TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified`},
		"elsewhere":       {elsewhere, 422, `TokenRequest.authentication.k8s.io "robot" is invalid: metadata.namespace: Invalid value: "elsewhere": must match the service account namespace if specified`},
		"attestations":    {attested, 422, `TokenRequest.authentication.k8s.io "" is invalid: spec.attestations: Invalid value: {"x":["y"]}: attestations may only be specified with a webhook bound object reference`},
		"many audiences":  {wordy, 400, "failed to generate token: the token would have more than 32768 bytes; ask for fewer audiences"},
		"a pod":           {bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p"}), 400, "cannot bind token to object of type /v1, Kind=Pod: this server has no pods and no nodes; bind it to a Secret, or to nothing"},
		"a node":          {bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"}), 400, "cannot bind token to object of type /v1, Kind=Node: this server has no pods and no nodes; bind it to a Secret, or to nothing"},
		"something else":  {bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}), 400, "cannot bind token to object of type /v1, Kind=ConfigMap"},
		"no such secret":  {bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "gone"}), 404, `secrets "gone" not found`},
		"another secret":  {bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: "anchor", UID: types.UID("former")}), 409, `Operation cannot be fulfilled on Secret "anchor": the UID in the bound object reference (former) does not match the UID in record. The object might have been deleted and then recreated`},
		"secret, nowhere": {bindingTo(authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret"}), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.ask(inNamespace(t), test.in)
			if err == nil {
				t.Fatal("granted")
			}
			var status apierrors.APIStatus
			if test.code != 0 && (!errors.As(err, &status) || status.Status().Code != test.code || err.Error() != test.want) {
				t.Errorf("got\n\t%v\nwant\n\t%d %s", err, test.code, test.want)
			}
		})
	}
}

func TestAdmissionSeesWhatIsIssued(t *testing.T) {
	f := newFixture(t)
	f.createAccount(t, "robot")
	refuse := func(_ context.Context, obj runtime.Object) error {
		in := obj.(*authenticationv1.TokenRequest)
		return fmt.Errorf("%s %d %v", in.Name, *in.Spec.ExpirationSeconds, in.Spec.Audiences)
	}
	_, err := f.Storage(f.accounts).(rest.NamedCreater).Create(inNamespace(t), "robot", &authenticationv1.TokenRequest{}, refuse, &metav1.CreateOptions{})
	if err == nil || err.Error() != "robot 3600 [https://server.example]" {
		t.Errorf("%v", err)
	}
}
