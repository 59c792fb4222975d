package accessreview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	authenticationunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// house is an authorizer of its own: ann may do everything, bob is denied, and
// about others it has no opinion. It remembers what it was asked.
type house struct {
	asked authorizer.Attributes
	err   error
}

func (h *house) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	h.asked = a
	switch a.GetUser().GetName() {
	case "ann":
		return authorizer.DecisionAllow, "it is ann", h.err
	case "bob":
		return authorizer.DecisionDeny, "it is bob", h.err
	}
	return authorizer.DecisionNoOpinion, "", h.err
}

func (h *house) RulesFor(_ context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{u.GetName()}, ResourceNames: []string{namespace}}},
		[]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}}, true, h.err
}

// authentication is made as servers make it: tokens, and anonymous users for
// health.
func authentication() authenticator.Request {
	tokens := bearertoken.New(tokenfile.New(map[string]*user.DefaultInfo{
		"secret": {Name: "ann", UID: "7", Groups: []string{"team"}, Extra: map[string][]string{"k": {"v"}}},
	}))
	return authenticationunion.NewFailOnError(tokens, anonymous.NewAuthenticator(nil))
}

// create asks a review, as a user, in a namespace if there is one.
func create[T runtime.Object](h *house, question T, as, namespace string, validate rest.ValidateObjectFunc) (T, error) {
	for _, r := range Resources(h, h, authentication()) {
		if fmt.Sprintf("%T", r.New()) != fmt.Sprintf("%T", question) {
			continue
		}
		ctx := request.WithNamespace(context.Background(), namespace)
		if as != "" {
			ctx = request.WithUser(ctx, &user.DefaultInfo{Name: as, UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"a": {"b"}}})
		}
		answer, err := r.Virtual.(rest.Creater).Create(ctx, question, validate, &metav1.CreateOptions{})
		if err != nil {
			return question, err
		}
		return answer.(T), nil
	}
	return question, errors.New("there is no such review")
}

func TestAccess(t *testing.T) {
	for name, want := range map[string]authorizationv1.SubjectAccessReviewStatus{
		"ann":  {Allowed: true, Reason: "it is ann", EvaluationError: "trouble"},
		"bob":  {Denied: true, Reason: "it is bob", EvaluationError: "trouble"},
		"else": {EvaluationError: "trouble"},
	} {
		h := &house{err: errors.New("trouble")}
		attributes := &authorizationv1.ResourceAttributes{Namespace: "a", Verb: "get", Group: "g", Resource: "r", Subresource: "s", Name: "n"}
		subject, err := create(h, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: name, Groups: []string{"x"}, UID: "u", Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}}, ResourceAttributes: attributes,
		}}, "asker", "", nil)
		if err != nil || subject.Status != want {
			t.Errorf("%s: %+v, %v", name, subject.Status, err)
		}
		wanted := authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name, Groups: []string{"x"}, UID: "u", Extra: map[string][]string{"k": {"v"}}},
			Verb: "get", Namespace: "a", APIGroup: "g", APIVersion: "*", Resource: "r", Subresource: "s", Name: "n", ResourceRequest: true,
		}
		if !reflect.DeepEqual(h.asked, authorizer.Attributes(wanted)) {
			t.Errorf("asked %+v of %+v", h.asked, h.asked.GetUser())
		}
		self, err := create(h, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/p", Verb: "get"},
		}}, name, "", nil)
		if err != nil || self.Status != want || h.asked.GetPath() != "/p" || h.asked.IsResourceRequest() {
			t.Errorf("%s: %+v, %v", name, self.Status, err)
		}
		local, err := create(h, &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a"},
			Spec:       authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: attributes},
		}, "asker", "a", nil)
		if err != nil || local.Status != want {
			t.Errorf("%s: %+v, %v", name, local.Status, err)
		}
	}
}

func TestInvalidAccess(t *testing.T) {
	resource := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "r", Namespace: "a"}
	other := &authorizationv1.NonResourceAttributes{Path: "/p", Verb: "get"}
	selectors := &authorizationv1.ResourceAttributes{
		FieldSelector: &authorizationv1.FieldSelectorAttributes{},
		LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: "a=b", Requirements: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}},
	}
	for _, c := range []struct {
		question runtime.Object
		want     []string
	}{
		{&authorizationv1.SubjectAccessReview{}, []string{
			`spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified`,
			`spec.user: Invalid value: "": at least one of user or group must be specified`,
		}},
		{&authorizationv1.SubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: resource, NonResourceAttributes: other}}, []string{
			`spec: Invalid value: {"Path":"/p","Verb":"get"}: exactly one of nonResourceAttributes or resourceAttributes must be specified`,
			`metadata: Invalid value: {"name":"n"}: must be empty`,
		}},
		{&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: selectors}}, []string{
			`spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required`,
			`spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements`,
			`spec.resourceAttributes.labelSelector.requirements[0].values: Required value: must be specified when ` + "`operator`" + ` is 'In' or 'NotIn'`,
		}},
		{&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "b"}, Spec: authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: resource}}, []string{
			`metadata: Invalid value: {"name":"n","namespace":"b"}: must be empty except for namespace`,
			`spec.resourceAttributes.namespace: Invalid value: "a": must match metadata.namespace`,
		}},
		{&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "b"}, Spec: authorizationv1.SubjectAccessReviewSpec{User: "u", NonResourceAttributes: other}}, []string{
			`spec.nonResourceAttributes: Invalid value: {"Path":"/p","Verb":"get"}: disallowed on this kind of request`,
		}},
	} {
		_, err := create(&house{}, c.question, "ann", "b", nil)
		want := `.authorization.k8s.io "" is invalid: ` + c.want[0]
		if len(c.want) > 1 {
			want = `.authorization.k8s.io "" is invalid: [` + strings.Join(c.want, ", ") + "]"
		}
		if !apierrors.IsInvalid(err) || err.Error() != want {
			t.Errorf("%T:\n%v\nwant\n%s", c.question, err, want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	resource := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "r"}
	inA := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "r", Namespace: "a"}
	for _, c := range []struct {
		question      runtime.Object
		as, namespace string
		want          string
	}{
		{&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: resource}}, "", "", "no user present on request"},
		{&authorizationv1.LocalSubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: resource}}, "ann", "", "namespace is required on this type: "},
		{&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: inA}}, "ann", "b", "spec.resourceAttributes.namespace must match namespace: b"},
		{&authorizationv1.SelfSubjectRulesReview{}, "ann", "", "no namespace on request"},
		{&authorizationv1.SelfSubjectRulesReview{}, "", "", "no user present on request"},
		{&authenticationv1.SelfSubjectReview{}, "", "", "no user present on request"},
		{&authenticationv1.TokenReview{}, "ann", "", "token is required for TokenReview in authentication"},
		{&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t"}}, "ann", "a", "namespace is not allowed on this type: a"},
	} {
		if _, err := create(&house{}, c.question, c.as, c.namespace, nil); !apierrors.IsBadRequest(err) || err.Error() != c.want {
			t.Errorf("%T: %v, want %s", c.question, err, c.want)
		}
	}
}

// Admission sees a copy of the question, and can refuse it.
func TestAdmission(t *testing.T) {
	refuse := func(_ context.Context, obj runtime.Object) error {
		obj.(*authenticationv1.TokenReview).Spec.Token = "changed"
		return apierrors.NewForbidden(authenticationv1.Resource("tokenreviews"), "", errors.New("no"))
	}
	question := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "secret"}}
	if _, err := create(&house{}, question, "ann", "", refuse); !apierrors.IsForbidden(err) || question.Spec.Token != "secret" || question.Status.Authenticated {
		t.Errorf("%v, %+v", err, question)
	}
}

func TestSelectors(t *testing.T) {
	ask := func(a *authorizationv1.ResourceAttributes) (authorizer.Attributes, string) {
		t.Helper()
		h := &house{}
		answer, err := create(h, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}, "ann", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return h.asked, answer.Status.EvaluationError
	}
	asked, text := ask(&authorizationv1.ResourceAttributes{
		FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "a=b,c!=d"},
		LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: "a in (b,c)"},
	})
	fields, err := asked.GetFieldSelector()
	labels, err2 := asked.GetLabelSelector()
	if text != "" || err != nil || err2 != nil || fmt.Sprint(fields) != "[{= a b} {!= c d}]" || fmt.Sprint(labels) != "a in (b,c)" {
		t.Errorf("%q, %v (%v), %v (%v)", text, fields, err, labels, err2)
	}

	asked, text = ask(&authorizationv1.ResourceAttributes{
		FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			{Key: "a", Operator: "In", Values: []string{"b"}}, {Key: "c", Operator: "NotIn", Values: []string{"d"}}, {Key: "e", Operator: "Exists"}, {Key: "f", Operator: "Near"},
		}},
		LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: "Near"}, {Key: "b", Operator: "Further"},
		}},
	})
	fields, _ = asked.GetFieldSelector()
	labels, _ = asked.GetLabelSelector()
	if text != "spec.resourceAttributes.fieldSelector partially ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error" ||
		fmt.Sprint(fields) != "[{= a b} {!= c d}]" || len(labels) != 0 {
		t.Errorf("%q, %v, %v", text, fields, labels)
	}
	if _, text = ask(&authorizationv1.ResourceAttributes{FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "&"}}); text != "spec.resourceAttributes.fieldSelector ignored due to parse error" {
		t.Errorf("%q", text)
	}
}

func TestRules(t *testing.T) {
	answer, err := create(&house{err: errors.New("trouble")}, &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "a"}}, "ann", "", nil)
	want := "{[{[get] [] [ann] [a]}] [{[get] [/x]}] true trouble}"
	if err != nil || strings.ReplaceAll(fmt.Sprintf("%v", answer.Status), "[ ]", "[]") != want {
		t.Errorf("%v, %v, want %s", answer.Status, err, want)
	}
}

func TestWhoAmI(t *testing.T) {
	answer, err := create(&house{}, &authenticationv1.SelfSubjectReview{}, "ann", "", nil)
	info := answer.Status.UserInfo
	if err != nil || info.Username != "ann" || info.UID != "1" || !slices.Equal(info.Groups, []string{"g"}) || info.Extra["a"][0] != "b" || answer.CreationTimestamp.IsZero() {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		token string
		want  string // the user, or an error
		ok    bool
	}{
		{"secret", "ann", true},
		{"wrong", "invalid bearer token", false},
		// A header would be cut at the space: this must not authenticate.
		{"secret rest", "invalid bearer token", false},
		{" secret", "invalid bearer token", false},
		{"\nsecret", "invalid bearer token", false},
		// The rest of the chain would make these anonymous.
		{" ", "invalid bearer token", false},
	} {
		answer, err := create(&house{}, &authenticationv1.TokenReview{
			Spec:   authenticationv1.TokenReviewSpec{Token: c.token},
			Status: authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "forged"}},
		}, "asker", "", nil)
		if err != nil {
			t.Errorf("%q: %v", c.token, err)
			continue
		}
		s := answer.Status
		if s.Authenticated != c.ok || s.User.Username+s.Error != c.want {
			t.Errorf("%q: %+v", c.token, s)
		}
		if c.ok && (s.User.UID != "7" || !slices.Contains(s.User.Groups, "team") || s.User.Extra["k"][0] != "v") {
			t.Errorf("%q: %+v", c.token, s.User)
		}
	}
}

// An authenticator that has not looked at audiences says nothing about a token for
// one.
func TestAudiences(t *testing.T) {
	aware := authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		asked, _ := authenticator.AudiencesFrom(req.Context())
		return &authenticator.Response{User: &user.DefaultInfo{Name: "ann"}, Audiences: authenticator.Audiences{"here", "there"}.Intersect(asked)}, true, nil
	})
	ask := func(ctx context.Context, audiences ...string) (*authenticationv1.TokenReview, error) {
		return tokens{authn: aware}.answer(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t", Audiences: audiences}})
	}
	if answer, err := ask(context.Background(), "there", "elsewhere"); err != nil || !slices.Equal(answer.Status.Audiences, []string{"there"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	own := authenticator.WithAudiences(context.Background(), authenticator.Audiences{"here"})
	if answer, err := ask(own); err != nil || !slices.Equal(answer.Status.Audiences, []string{"here"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	if _, err := ask(context.Background(), "elsewhere"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "error validating audiences") {
		t.Errorf("%v", err)
	}
}

func TestNoAuthentication(t *testing.T) {
	answer, err := tokens{}.answer(context.Background(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t"}, Status: authenticationv1.TokenReviewStatus{Authenticated: true}})
	if err != nil || answer.Status.Authenticated {
		t.Errorf("%+v, %v", answer, err)
	}
}
