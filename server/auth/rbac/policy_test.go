package rbac

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPolicy is what kube-apiserver has, as far as it is about something that is served
// here: names, labels and rules are what manifests refer to.
const defaultPolicy = `role cluster-admin
  * "*" *
  * *
role system:discovery
  get /livez /readyz /healthz /version /version/ /openapi /openapi/* /api /api/* /apis /apis/*
role system:public-info-viewer
  get /livez /readyz /healthz /version /version/
role system:basic-user
  create "authorization.k8s.io" selfsubjectaccessreviews selfsubjectrulesreviews
  create "authentication.k8s.io" selfsubjectreviews
role system:auth-delegator
  create "authentication.k8s.io" tokenreviews
  create "authorization.k8s.io" subjectaccessreviews
role system:certificates.k8s.io:kube-apiserver-client-approver
  approve "certificates.k8s.io" signers named kubernetes.io/kube-apiserver-client
role system:service-account-issuer-discovery
  get /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/
role system:monitoring
  get /metrics /metrics/slis /livez /readyz /healthz /livez/* /readyz/* /healthz/*
role admin
  of rbac.authorization.k8s.io/aggregate-to-admin=true
role edit
  label rbac.authorization.k8s.io/aggregate-to-admin=true
  of rbac.authorization.k8s.io/aggregate-to-edit=true
role view
  label rbac.authorization.k8s.io/aggregate-to-edit=true
  of rbac.authorization.k8s.io/aggregate-to-view=true
role system:aggregate-to-admin
  label rbac.authorization.k8s.io/aggregate-to-admin=true
  create "authorization.k8s.io" localsubjectaccessreviews
  create,delete,deletecollection,get,list,patch,update,watch "rbac.authorization.k8s.io" rolebindings roles
role system:aggregate-to-edit
  label rbac.authorization.k8s.io/aggregate-to-edit=true
  get,list,watch "" secrets
  impersonate "" serviceaccounts
  create,delete,deletecollection,patch,update "" configmaps events secrets serviceaccounts
  create "" serviceaccounts/token
  create,delete,deletecollection,get,list,patch,update,watch "coordination.k8s.io" leases
role system:aggregate-to-view
  label rbac.authorization.k8s.io/aggregate-to-view=true
  get,list,watch "" configmaps serviceaccounts
  get,list,watch "" events namespaces/status resourcequotas resourcequotas/status
  get,list,watch "" namespaces
binding cluster-admin
  rbac.authorization.k8s.io ClusterRole cluster-admin
  rbac.authorization.k8s.io Group system:masters
binding system:monitoring
  rbac.authorization.k8s.io ClusterRole system:monitoring
  rbac.authorization.k8s.io Group system:monitoring
binding system:discovery
  rbac.authorization.k8s.io ClusterRole system:discovery
  rbac.authorization.k8s.io Group system:authenticated
binding system:basic-user
  rbac.authorization.k8s.io ClusterRole system:basic-user
  rbac.authorization.k8s.io Group system:authenticated
binding system:public-info-viewer
  rbac.authorization.k8s.io ClusterRole system:public-info-viewer
  rbac.authorization.k8s.io Group system:authenticated
  rbac.authorization.k8s.io Group system:unauthenticated
binding system:service-account-issuer-discovery
  rbac.authorization.k8s.io ClusterRole system:service-account-issuer-discovery
  rbac.authorization.k8s.io Group system:serviceaccounts
`

func TestDefaultPolicy(t *testing.T) {
	var b strings.Builder
	line := func(words ...string) { b.WriteString(strings.TrimRight(strings.Join(words, " "), " ") + "\n") }
	about := func(kind string, m metav1.ObjectMeta) {
		line(kind, m.Name)
		if m.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" || m.Annotations["rbac.authorization.kubernetes.io/autoupdate"] != "true" {
			t.Errorf("%s %s: %v %v", kind, m.Name, m.Labels, m.Annotations)
		}
		for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
			if key != "kubernetes.io/bootstrapping" {
				line("  label", key+"="+m.Labels[key])
			}
		}
	}
	for _, r := range defaultRoles() {
		about("role", r.ObjectMeta)
		if r.AggregationRule != nil {
			for _, s := range r.AggregationRule.ClusterRoleSelectors {
				line("  of", metav1.FormatLabelSelector(&s))
			}
		}
		for _, rule := range r.Rules {
			line("  " + spelled(rule))
		}
	}
	for _, one := range defaultBindings() {
		about("binding", one.ObjectMeta)
		line(" ", one.RoleRef.APIGroup, one.RoleRef.Kind, one.RoleRef.Name)
		for _, s := range one.Subjects {
			line(" ", s.APIGroup, s.Kind, s.Namespace+s.Name)
		}
	}
	got, want := strings.Split(b.String(), "\n"), strings.Split(defaultPolicy, "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("from line %d on:\n%s\nwant\n%s", i+1, strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
		}
	}
}

// spelled is a rule on one line.
func spelled(r rbacv1.PolicyRule) string {
	words := []string{strings.Join(r.Verbs, ",")}
	for _, group := range r.APIGroups {
		words = append(words, `"`+group+`"`)
	}
	words = slices.Concat(words, r.Resources, r.NonResourceURLs)
	if len(r.ResourceNames) > 0 {
		words = slices.Concat(words, []string{"named"}, r.ResourceNames)
	}
	return strings.Join(words, " ")
}

// Rules of more permissions than a review looks at count as just too many.
func TestPermissions(t *testing.T) {
	many := make([]string, maxPermissions)
	for _, test := range []struct {
		rule rbacv1.PolicyRule
		want int
	}{
		{rbacv1.PolicyRule{}, 0},
		{rbacv1.PolicyRule{APIGroups: many[:2], Resources: many[:3], Verbs: many[:5]}, 30},
		{rbacv1.PolicyRule{APIGroups: many[:2], Resources: many[:3], Verbs: many[:5], ResourceNames: many[:2]}, 60},
		{rbacv1.PolicyRule{NonResourceURLs: many[:3], Verbs: many[:2]}, 6},
		{rbacv1.PolicyRule{APIGroups: many[:1], Resources: many[:1], Verbs: many}, maxPermissions},
		{rbacv1.PolicyRule{APIGroups: many[:2], Resources: many[:1], Verbs: many}, maxPermissions + 1},
		{rbacv1.PolicyRule{APIGroups: many, Resources: many, Verbs: many, ResourceNames: many}, maxPermissions + 1},
		{rbacv1.PolicyRule{NonResourceURLs: many, Verbs: many[:3]}, maxPermissions + 1},
	} {
		if got := permissions(&test.rule); got != test.want {
			t.Errorf("%d, want %d", got, test.want)
		}
	}
}
