package scenarios

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A program written for Kubernetes makes, reads, follows, changes and deletes what it needs besides custom resources, in protobuf, and
// etcd has it where and as kube-apiserver would have put it.
func TestBuiltinsInProtobuf(t *testing.T) {
	s, etcd := own(t)
	c := speaking(t, s.Config)
	for name, test := range map[string]func(*testing.T, *kubernetes.Clientset, vault){
		"core": coreLives, "events": eventsLive, "leases": leasesLive, "roles": rolesLive, "webhooks": webhooksLive, "policies": policiesLive, "flow": flowLives,
	} {
		t.Run(name, func(t *testing.T) { test(t, c, vault{t, etcd.client, etcd.prefix}) })
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func coreLives(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	core := c.CoreV1()
	live(t, etcd, "/configmaps/default/tides", core.ConfigMaps("default"), &corev1.ConfigMap{ObjectMeta: named("tides"), Data: map[string]string{"high": "6:10"}},
		func(o *corev1.ConfigMap) { o.BinaryData = map[string][]byte{"chart": {0, 1, 255}} })
	live(t, etcd, "/secrets/default/key", core.Secrets("default"), &corev1.Secret{ObjectMeta: named("key"), StringData: map[string]string{"word": "sesame"}},
		func(o *corev1.Secret) {
			if string(o.Data["word"]) != "sesame" || o.Type != corev1.SecretTypeOpaque {
				t.Errorf("a secret is %+v", o)
			}
			o.Data["word"] = []byte("thyme")
		})
	live(t, etcd, "/serviceaccounts/default/pilot", core.ServiceAccounts("default"), &corev1.ServiceAccount{ObjectMeta: named("pilot")},
		func(o *corev1.ServiceAccount) { o.AutomountServiceAccountToken = new(false) })
	namespacesLive(t, c, etcd)
}

// namespacesLive is apart from the others: a namespace goes in two steps, its content first.
func namespacesLive(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	ctx, spaces, one := t.Context(), c.CoreV1().Namespaces(), must[*corev1.Namespace](t)
	shelf := &shelf[*corev1.Namespace, *corev1.NamespaceList]{t: t, client: spaces, name: "bay"}
	made := one(spaces.Create(ctx, &corev1.Namespace{ObjectMeta: named("bay")}, metav1.CreateOptions{}))
	if made.Status.Phase != corev1.NamespaceActive || made.Labels[corev1.LabelMetadataName] != "bay" || len(made.Spec.Finalizers) != 1 {
		t.Errorf("a namespace is %+v", made)
	}
	shelf.stored(etcd, "/namespaces/bay")
	shelf.update(func(o *corev1.Namespace) { o.Annotations = map[string]string{"note": "x"} })
	shelf.patches(made)
	shelf.listed()
	maps := c.CoreV1().ConfigMaps("bay")
	must[*corev1.ConfigMap](t)(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("tides")}, metav1.CreateOptions{}))
	if err := spaces.Delete(ctx, "bay", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the namespace is gone, with what it had", func() bool {
		_, err := spaces.Get(ctx, "bay", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if n := etcd.count("/configmaps/bay/") + etcd.count("/namespaces/bay"); n != 0 {
		t.Errorf("%d keys of the namespace are left", n)
	}
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("tides")}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object in a namespace that is gone: %v", err)
	}
}

// Events are the same things in two groups.
func eventsLive(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "tides", UID: "1"}
	live(t, etcd, "/events/default/flood.1", c.CoreV1().Events("default"),
		&corev1.Event{ObjectMeta: named("flood.1"), InvolvedObject: about, Reason: "Flood", Message: "it rises", Type: "Normal", Count: 1},
		func(o *corev1.Event) { o.Count = 2 })
	newer := c.EventsV1().Events("default")
	one := must[*eventsv1.Event](t)
	object := &eventsv1.Event{ObjectMeta: named("ebb.1"), EventTime: metav1.NowMicro(), ReportingController: "example.com/moon", ReportingInstance: "moon-1",
		Action: "Pull", Reason: "Ebb", Regarding: about, Note: "it falls", Type: "Normal"}
	made := one(newer.Create(t.Context(), object, metav1.CreateOptions{}))
	made.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
	one(newer.Update(t.Context(), made, metav1.UpdateOptions{}))
	older := must[*corev1.Event](t)(c.CoreV1().Events("default").Get(t.Context(), "ebb.1", metav1.GetOptions{}))
	if older.Message != "it falls" || older.InvolvedObject != about || older.Series.Count != 2 || older.UID != made.UID {
		t.Errorf("the event, as the older group has it: %+v", older)
	}
	// kube-apiserver stores events of either group as those of the older one.
	shelf := &shelf[*corev1.Event, *corev1.EventList]{t: t, client: c.CoreV1().Events("default"), name: "ebb.1"}
	shelf.stored(etcd, "/events/default/ebb.1")
	found := must[*corev1.EventList](t)(c.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=tides,reason=Ebb"}))
	if len(found.Items) != 1 {
		t.Errorf("%d events are found by what they are about", len(found.Items))
	}
	if err := newer.Delete(t.Context(), "ebb.1", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	live(t, etcd, "/events/default/spring.1", newer, func() *eventsv1.Event { o := object.DeepCopy(); o.Name = "spring.1"; return o }(),
		func(o *eventsv1.Event) {
			o.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
		})
}

func leasesLive(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	now := metav1.NewMicroTime(time.Now())
	live(t, etcd, "/leases/kube-system/bridge", c.CoordinationV1().Leases("kube-system"),
		&coordinationv1.Lease{ObjectMeta: named("bridge"), Spec: coordinationv1.LeaseSpec{HolderIdentity: new("ada"), LeaseDurationSeconds: new(int32(15)), RenewTime: &now}},
		func(o *coordinationv1.Lease) {
			o.Spec.HolderIdentity, o.Spec.LeaseTransitions = new("grace"), new(int32(1))
		})
}

func rolesLive(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "ada"}}
	rbac := c.RbacV1()
	live(t, etcd, "/roles/default/reader", rbac.Roles("default"), &rbacv1.Role{ObjectMeta: named("reader"), Rules: rules},
		func(o *rbacv1.Role) { o.Rules[0].Verbs = []string{"get", "list"} })
	live(t, etcd, "/clusterroles/reader", rbac.ClusterRoles(), &rbacv1.ClusterRole{ObjectMeta: named("reader"), Rules: rules},
		func(o *rbacv1.ClusterRole) { o.Rules[0].Verbs = []string{"get", "list"} })
	live(t, etcd, "/rolebindings/default/ada", rbac.RoleBindings("default"),
		&rbacv1.RoleBinding{ObjectMeta: named("ada"), Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}},
		func(o *rbacv1.RoleBinding) { o.Subjects[0].Name = "grace" })
	live(t, etcd, "/clusterrolebindings/ada", rbac.ClusterRoleBindings(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("ada"), Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"}},
		func(o *rbacv1.ClusterRoleBinding) { o.Subjects[0].Name = "grace" })
}

// nowhereRules are what webhooks and policies here are about: nothing that there is.
func nowhereRules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{"nowhere.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}}}}
}

func webhooksLive(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	client := admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")}
	effects := new(admissionv1.SideEffectClassNone)
	live(t, etcd, "/mutatingwebhookconfigurations/hook", c.AdmissionregistrationV1().MutatingWebhookConfigurations(),
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: named("hook"), Webhooks: []admissionv1.MutatingWebhook{{Name: "a.example.com", ClientConfig: client, Rules: nowhereRules(), SideEffects: effects, AdmissionReviewVersions: []string{"v1"}}}},
		func(o *admissionv1.MutatingWebhookConfiguration) {
			if w := o.Webhooks[0]; *w.FailurePolicy != admissionv1.Fail || *w.TimeoutSeconds != 10 || *w.ReinvocationPolicy != admissionv1.NeverReinvocationPolicy {
				t.Errorf("the defaults of a webhook are %+v", w)
			}
			o.Webhooks[0].TimeoutSeconds = new(int32(3))
		})
	live(t, etcd, "/validatingwebhookconfigurations/hook", c.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: named("hook"), Webhooks: []admissionv1.ValidatingWebhook{{Name: "a.example.com", ClientConfig: client, Rules: nowhereRules(), SideEffects: effects, AdmissionReviewVersions: []string{"v1"}}}},
		func(o *admissionv1.ValidatingWebhookConfiguration) { o.Webhooks[0].TimeoutSeconds = new(int32(3)) })
}

func policiesLive(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	match := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: nowhereRules()[0]}}}
	r := c.AdmissionregistrationV1()
	live(t, etcd, "/validatingadmissionpolicies/rule", r.ValidatingAdmissionPolicies(),
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named("rule"), Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: match, Validations: []admissionv1.Validation{{Expression: "true"}}}},
		func(o *admissionv1.ValidatingAdmissionPolicy) { o.Spec.Validations[0].Message = "no" })
	live(t, etcd, "/validatingadmissionpolicybindings/rule", r.ValidatingAdmissionPolicyBindings(),
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named("rule"), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "rule", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}},
		func(o *admissionv1.ValidatingAdmissionPolicyBinding) {
			o.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		})
	live(t, etcd, "/mutatingadmissionpolicies/rule", r.MutatingAdmissionPolicies(),
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: named("rule"), Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: match, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "test", path: "/a", value: "b"}]`}}}}},
		func(o *admissionv1.MutatingAdmissionPolicy) {
			o.Spec.ReinvocationPolicy = admissionv1.IfNeededReinvocationPolicy
		})
	live(t, etcd, "/mutatingadmissionpolicybindings/rule", r.MutatingAdmissionPolicyBindings(),
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: named("rule"), Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "rule"}},
		func(o *admissionv1.MutatingAdmissionPolicyBinding) {
			o.Spec.MatchResources = &admissionv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		})
}

func flowLives(t *testing.T, c *kubernetes.Clientset, etcd vault) {
	live(t, etcd, "/prioritylevelconfigurations/slow", c.FlowcontrolV1().PriorityLevelConfigurations(),
		&flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: named("slow"), Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: new(int32(1)), LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}},
		func(o *flowcontrolv1.PriorityLevelConfiguration) {
			o.Spec.Limited.NominalConcurrencyShares = new(int32(2))
		})
	live(t, etcd, "/flowschemas/nobody", c.FlowcontrolV1().FlowSchemas(),
		&flowcontrolv1.FlowSchema{ObjectMeta: named("nobody"), Spec: flowcontrolv1.FlowSchemaSpec{PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "catch-all"}, MatchingPrecedence: 9000,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{{Kind: "User", User: &flowcontrolv1.UserSubject{Name: "nobody"}}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/nowhere"}}}}}}},
		func(o *flowcontrolv1.FlowSchema) { o.Spec.MatchingPrecedence = 9001 })
}

// Reviews are answered and not kept.
func TestReviewsInProtobuf(t *testing.T) {
	s, etcd := own(t)
	ctx, c := t.Context(), speaking(t, s.Config)
	must[*corev1.ServiceAccount](t)(c.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: named("pilot")}, metav1.CreateOptions{}))
	request := must[*authenticationv1.TokenRequest](t)(c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "pilot",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}, metav1.CreateOptions{}))
	if request.Status.Token == "" || request.Status.ExpirationTimestamp.IsZero() {
		t.Errorf("a token: %+v", request.Status)
	}
	const pilot = "system:serviceaccount:default:pilot"
	token := must[*authenticationv1.TokenReview](t)(c.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token}}, metav1.CreateOptions{}))
	if !token.Status.Authenticated || token.Status.User.Username != pilot {
		t.Errorf("whose token it is: %+v", token.Status)
	}
	self := speaking(t, bearing(s, request.Status.Token))
	who := must[*authenticationv1.SelfSubjectReview](t)(self.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	if who.Status.UserInfo.Username != pilot {
		t.Errorf("the pilot is %+v", who.Status)
	}
	accessReviews(t, c, self, pilot)
	if n := etcd.count("/tokenreviews") + etcd.count("/subjectaccessreviews") + etcd.count("/selfsubjectreviews"); n != 0 {
		t.Errorf("%d reviews are kept", n)
	}
}

// accessReviews asks what the pilot may do, before and after it may.
func accessReviews(t *testing.T, c, self *kubernetes.Clientset, user string) {
	t.Helper()
	ctx, reads := t.Context(), &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "configmaps"}
	allowed := func(ctx context.Context) (all []bool) {
		one := must[*authorizationv1.SubjectAccessReview](t)(c.AuthorizationV1().SubjectAccessReviews().Create(ctx,
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: reads}}, metav1.CreateOptions{}))
		local := must[*authorizationv1.LocalSubjectAccessReview](t)(c.AuthorizationV1().LocalSubjectAccessReviews("default").Create(ctx,
			&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: reads}}, metav1.CreateOptions{}))
		own := must[*authorizationv1.SelfSubjectAccessReview](t)(self.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: reads}}, metav1.CreateOptions{}))
		rules := must[*authorizationv1.SelfSubjectRulesReview](t)(self.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{}))
		listed := false
		for _, rule := range rules.Status.ResourceRules {
			listed = listed || hasOrAll(rule.Resources, "configmaps")
		}
		return []bool{one.Status.Allowed, local.Status.Allowed, own.Status.Allowed, listed}
	}
	if got := encode(t, allowed(ctx)); got != "[false,false,false,false]" {
		t.Errorf("before there is a role: %s", got)
	}
	must[*rbacv1.Role](t)(c.RbacV1().Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: named("reader"),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](t)(c.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: named("pilot"),
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "pilot"}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}}, metav1.CreateOptions{}))
	eventually(t, soon, "the pilot may read", func() bool { return encode(t, allowed(ctx)) == "[true,true,true,true]" })
}
