package accessreview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

func checkWhoAmI(ctx context.Context, _ *authenticationv1.SelfSubjectReview) error {
	_, err := askedBy(ctx)
	return err
}

func whoAmI(ctx context.Context, _ *authenticationv1.SelfSubjectReview) (*authenticationv1.SelfSubjectReview, error) {
	u, err := askedBy(ctx)
	if err != nil {
		return nil, err
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: infoOf(u)},
	}, nil
}

func infoOf(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: u.GetName(),
		UID:      u.GetUID(),
		Groups:   u.GetGroups(),
		Extra:    make(map[string]authenticationv1.ExtraValue, len(u.GetExtra())),
	}
	for key, values := range u.GetExtra() {
		info.Extra[key] = values
	}
	return info
}

// tokens answers TokenReviews.
type tokens struct {
	authn authenticator.Request
}

func checkToken(ctx context.Context, r *authenticationv1.TokenReview) error {
	if namespace := genericapirequest.NamespaceValue(ctx); namespace != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("namespace is not allowed on this type: %v", namespace))
	}
	if r.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	return nil
}

var (
	errInvalidToken = errors.New("invalid bearer token")
	errAudiences    = errors.New("error validating audiences")
)

func (t tokens) answer(ctx context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	r.Status = authenticationv1.TokenReviewStatus{}
	if t.authn == nil {
		return r, nil
	}
	audiences := authenticator.Audiences(r.Spec.Audiences)
	if len(audiences) == 0 {
		// Those of the server, which this request has been authenticated for.
		audiences, _ = authenticator.AudiencesFrom(ctx)
	}
	response, ok, err := t.authenticate(ctx, r.Spec.Token, audiences)
	if err != nil {
		r.Status.Error = err.Error()
	}
	r.Status.Authenticated = ok
	if response == nil {
		return r, nil
	}
	if len(audiences) > 0 && len(audiences.Intersect(response.Audiences)) == 0 {
		klog.ErrorS(errAudiences, "Authenticator did not check the requested audiences", "wanted", audiences, "got", response.Audiences)
		return nil, apierrors.NewInternalError(errAudiences)
	}
	if response.User != nil {
		r.Status.User = infoOf(response.User)
		r.Status.Audiences = response.Audiences
	}
	return r, nil
}

// authenticate authenticates a request that has nothing but the token.
func (t tokens) authenticate(ctx context.Context, token string, audiences authenticator.Audiences) (*authenticator.Response, bool, error) {
	if strings.ContainsAny(token, " \t\r\n") {
		// In a header, what follows the space would be cut off.
		return nil, false, errInvalidToken
	}
	// Authenticators write to the context. This must concern the token, not the request
	// of the review.
	bare, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if len(audiences) > 0 {
		bare = authenticator.WithAudiences(bare, audiences)
	}
	req := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Path: "/"},
		Header: http.Header{"Authorization": {"Bearer " + token}},
	}).WithContext(bare)
	response, ok, err := t.authn.AuthenticateRequest(req)
	if ok && response != nil && response.User != nil && response.User.GetName() == user.Anonymous {
		return nil, false, errInvalidToken
	}
	return response, ok, err
}
