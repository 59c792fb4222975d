package scenarios

import (
	"context"
	"strings"
	"testing"
	"time"
)

// edits runs `kubectl edit` with an editor that replaces one text by another.
func (k *kubectl) edits(from, to string, args ...string) {
	k.t.Helper()
	editor := write(k.t, "editor", "#!/bin/sh\nsed -i 's/"+from+"/"+to+"/' \"$1\"\n")
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, append([]string{"edit"}, args...)...)
	cmd.Env = append(cmd.Env, "KUBE_EDITOR="+editor)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), " edited") {
		k.t.Errorf("kubectl edit %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// What the commands of `kubectl create` make is what kubectl then shows.
func TestKubectlMakesBuiltins(t *testing.T) {
	s, _ := own(t)
	k := newKubectl(t, s)
	k.says([]string{"namespace/bay created"}, "create", "namespace", "bay")
	k.fails([]string{`Error from server (AlreadyExists): namespaces "bay" already exists`}, "create", "namespace", "bay")
	k.fails([]string{`error: failed to create configmap: namespaces "nowhere" not found`}, "create", "configmap", "tides", "-n", "nowhere")
	k.says([]string{"configmap/tides created"}, "create", "configmap", "tides", "-n", "bay", "--from-literal=high=6:10", "--from-literal=low=12:20")
	k.says([]string{"secret/word created"}, "create", "secret", "generic", "word", "-n", "bay", "--from-literal=word="+secret)
	pair := write(t, "server.crt", string(s.Config.CertData))
	key := write(t, "server.key", string(s.Config.KeyData))
	k.says([]string{"secret/pair created"}, "create", "secret", "tls", "pair", "-n", "bay", "--cert="+pair, "--key="+key)
	k.says([]string{"role.rbac.authorization.k8s.io/reader created"}, "create", "role", "reader", "-n", "bay", "--verb=get,list", "--resource=configmaps")
	k.says([]string{"clusterrole.rbac.authorization.k8s.io/walker created"}, "create", "clusterrole", "walker", "--verb=get", "--resource=namespaces")
	k.says([]string{"serviceaccount/pilot created"}, "create", "serviceaccount", "pilot", "-n", "bay")
	k.says([]string{"rolebinding.rbac.authorization.k8s.io/pilot created"}, "create", "rolebinding", "pilot", "-n", "bay", "--role=reader", "--serviceaccount=bay:pilot")
	k.says([]string{"clusterrolebinding.rbac.authorization.k8s.io/pilot created"}, "create", "clusterrolebinding", "pilot", "--clusterrole=walker", "--serviceaccount=bay:pilot")
	t.Run("gets", func(t *testing.T) { getsBuiltins(k.in(t)) })
	t.Run("describes", func(t *testing.T) { describesBuiltins(k.in(t)) })
	t.Run("explains", func(t *testing.T) { explainsBuiltins(k.in(t)) })
	t.Run("token", func(t *testing.T) {
		k := k.in(t)
		pilot := kubectlAs(t, s, bearing(s, strings.TrimSpace(k.ok("create", "token", "pilot", "-n", "bay"))))
		pilot.succeeds("tides", "get", "configmap", "-n", "bay")
		pilot.succeeds("bay", "get", "namespace", "bay")
		pilot.fails([]string{`Error from server (Forbidden): secrets is forbidden: User "system:serviceaccount:bay:pilot" cannot list resource "secrets" in API group "" in the namespace "bay"`}, "get", "secrets", "-n", "bay")
	})
	k.says([]string{`namespace "bay" deleted`}, "delete", "namespace", "bay")
	k.fails([]string{"NotFound"}, "get", "namespace", "bay")
}

func getsBuiltins(k *kubectl) {
	k.t.Helper()
	k.says([]string{"NAME", "STATUS   AGE", "bay           Active"}, "get", "ns")
	k.says([]string{"NAME    DATA   AGE\ntides   2 "}, "get", "cm", "-n", "bay")
	k.says([]string{"NAME   TYPE                DATA   AGE\n", "pair   kubernetes.io/tls   2 ", "word   Opaque              1 "}, "get", "secrets", "-n", "bay")
	k.says([]string{"NAME     CREATED AT\nreader "}, "get", "roles", "-n", "bay")
	k.says([]string{"NAME    ROLE          AGE\npilot   Role/reader "}, "get", "rolebindings", "-n", "bay")
	k.says([]string{"SERVICEACCOUNTS", "bay/pilot"}, "get", "rolebindings", "-n", "bay", "-o", "wide")
	k.says([]string{"NAME    ROLE                 AGE\npilot   ClusterRole/walker "}, "get", "clusterrolebinding", "pilot")
	k.says([]string{"NAME    ", "pilot   "}, "get", "sa", "pilot", "-n", "bay")
	k.says([]string{"NAME", "HOLDER", "AGE"}, "get", "leases", "-n", "kube-system")
	k.says([]string{"PRIORITYLEVEL", "MATCHINGPRECEDENCE", "DISTINGUISHERMETHOD", "catch-all"}, "get", "flowschemas")
	k.says([]string{"NOMINALCONCURRENCYSHARES", "workload-low", "exempt"}, "get", "prioritylevelconfigurations")
	k.says([]string{"6:10"}, "get", "cm", "tides", "-n", "bay", "-o", "jsonpath={.data.high}")
	k.says([]string{"configmap/tides", "rolebinding.rbac.authorization.k8s.io/pilot"}, "get", "cm,rolebinding", "-n", "bay", "-o", "name")
	k.says([]string{"configmaps", "cm", "v1", "true", "ConfigMap"}, "api-resources", "--api-group=", "--no-headers")
}

func describesBuiltins(k *kubectl) {
	k.t.Helper()
	k.says([]string{"Name:         bay", "Status:       Active"}, "describe", "namespace", "bay")
	k.says([]string{"Name:         tides", "high:\n----\n6:10\n", "BinaryData"}, "describe", "configmap", "tides", "-n", "bay")
	out := k.ok("describe", "secret", "word", "-n", "bay")
	contains(k.t, []string{"describe", "secret"}, out, []string{"Type:  Opaque", "word:  6 bytes"})
	if strings.Contains(out, secret) {
		k.t.Errorf("a secret is told:\n%s", out)
	}
	k.says([]string{"configmaps  []                 []              [get list]"}, "describe", "role", "reader", "-n", "bay")
	k.says([]string{"Kind:  Role\n  Name:  reader", "ServiceAccount  pilot  bay"}, "describe", "rolebinding", "pilot", "-n", "bay")
	k.says([]string{"Name:                pilot", "Namespace:           bay"}, "describe", "serviceaccount", "pilot", "-n", "bay")
	k.says([]string{"API Version:  flowcontrol.apiserver.k8s.io/v1", "Kind:         FlowSchema"}, "describe", "flowschema", "catch-all")
}

func explainsBuiltins(k *kubectl) {
	k.t.Helper()
	k.says([]string{"KIND:       ConfigMap", "VERSION:    v1", "binaryData\t<map[string]string>"}, "explain", "configmap")
	k.says([]string{"FIELD: holderIdentity <string>"}, "explain", "lease.spec.holderIdentity")
	k.says([]string{"GROUP:      rbac.authorization.k8s.io", "roleRef\t<RoleRef> -required-"}, "explain", "rolebinding")
	k.says([]string{"failurePolicy\t<string>", "enum: Fail, Ignore"}, "explain", "mutatingwebhookconfigurations.webhooks")
	k.says([]string{"GROUP:      events.k8s.io", "regarding\t<ObjectReference>"}, "explain", "events", "--api-version=events.k8s.io/v1")
}

const tidesOfBay = `
apiVersion: v1
kind: ConfigMap
metadata: {name: tides, namespace: default, labels: {sea: north}}
data: {high: "6:10"}
`

// Manifests of built-in resources are applied, by client and by server, compared and edited.
func TestKubectlAppliesBuiltins(t *testing.T) {
	s, _ := own(t)
	k := newKubectl(t, s)
	file, later := write(t, "tides.yaml", tidesOfBay), write(t, "later.yaml", strings.ReplaceAll(tidesOfBay, "6:10", "7:00"))
	if out, code := k.do("diff", "-f", file); code != 1 || !strings.Contains(out, "+  high: \"6:10\"") {
		t.Errorf("diff of a new object: exit code %d\n%s", code, out)
	}
	k.says([]string{"configmap/tides created"}, "apply", "-f", file)
	k.says([]string{"configmap/tides unchanged"}, "apply", "-f", file)
	k.says([]string{"configmap/tides configured"}, "apply", "-f", later)
	if out, code := k.do("diff", "-f", file); code != 1 || !strings.Contains(out, "-  high: \"7:00\"\n+  high: \"6:10\"\n") {
		t.Errorf("diff: exit code %d\n%s", code, out)
	}
	k.edits("7:00", "8:00", "configmap", "tides")
	k.says([]string{"8:00"}, "get", "configmap", "tides", "-o", "jsonpath={.data.high}")
	k.ok("delete", "configmap", "tides")

	k.says([]string{"configmap/tides serverside-applied"}, "apply", "--server-side", "--field-manager=a", "-f", file)
	k.fails([]string{"Apply failed with 1 conflict", `conflict with "a": .data.high`}, "apply", "--server-side", "--field-manager=b", "-f", later)
	k.says([]string{"configmap/tides serverside-applied"}, "apply", "--server-side", "--field-manager=b", "--force-conflicts", "-f", later)
	k.says([]string{"manager: a", "manager: b", "operation: Apply", "f:high"}, "get", "configmap", "tides", "-o", "yaml", "--show-managed-fields")
	if out, code := k.do("diff", "--server-side", "--field-manager=b", "-f", later); code != 0 {
		t.Errorf("diff after apply: exit code %d\n%s", code, out)
	}
	k.fails([]string{`unknown field "date"`}, "apply", "--validate=strict", "-f", write(t, "typo.yaml", strings.Replace(tidesOfBay, "\ndata:", "\ndate:", 1)))
	k.fails([]string{`binaryData[../escape]: Invalid value: "../escape": a valid config key must consist of`}, "create", "-f", write(t, "bad.yaml", strings.Replace(tidesOfBay, "name: tides", "name: bad", 1)+"binaryData: {\"../escape\": YQ==}\n"))
	k.edits("north", "south", "configmap", "tides")
	k.says([]string{"configmap/tides\n"}, "get", "configmaps", "-l", "sea=south", "-o", "name")
	k.says([]string{"condition met"}, "wait", "configmap/tides", "--for=jsonpath={.data.high}=7:00", "--timeout=30s")
	k.says([]string{`configmap "tides" deleted`}, "delete", "-f", file)
	for _, c := range []struct{ name, manifest string }{
		{"role.rbac.authorization.k8s.io/r", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"default"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`},
		{"lease.coordination.k8s.io/l", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","namespace":"default"},"spec":{"holderIdentity":"ada"}}`},
		{"serviceaccount/a", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","namespace":"default"}}`},
	} {
		file := write(t, "object.json", c.manifest)
		k.says([]string{c.name + " serverside-applied"}, "apply", "--server-side", "-f", file)
		if out, code := k.do("diff", "--server-side", "-f", file); code != 0 {
			t.Errorf("diff of %s: exit code %d\n%s", c.name, code, out)
		}
	}
}

// `kubectl events` and `kubectl describe` show what happened to an object.
func TestKubectlEvents(t *testing.T) {
	s, _ := own(t)
	k := newKubectl(t, s)
	k.ok("create", "configmap", "tides")
	uid := k.ok("get", "configmap", "tides", "-o", "jsonpath={.metadata.uid}")
	for _, e := range []string{`"name":"tides.1"},"reason":"Flood","message":"it rises","type":"Normal"`, `"name":"tides.2"},"reason":"Storm","message":"stay in","type":"Warning"`} {
		k.ok("create", "-f", write(t, "event.json", `{"apiVersion":"v1","kind":"Event","involvedObject":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"tides","uid":"`+uid+`"},
"firstTimestamp":"`+time.Now().UTC().Format(time.RFC3339)+`","lastTimestamp":"`+time.Now().UTC().Format(time.RFC3339)+`","count":1,"source":{"component":"moon"},"metadata":{"namespace":"default",`+e+`}`))
	}
	k.says([]string{"LAST SEEN", "Normal    Flood    ConfigMap/tides   it rises", "Warning   Storm    ConfigMap/tides   stay in"}, "events")
	if out := k.ok("events", "--for=configmap/tides", "--types=Warning"); strings.Contains(out, "Flood") || !strings.Contains(out, "Storm") {
		t.Errorf("warnings only:\n%s", out)
	}
	k.says([]string{"LAST SEEN   TYPE      REASON   OBJECT            MESSAGE", "configmap/tides   it rises"}, "get", "events")
	k.says([]string{"tides.2"}, "get", "events", "--field-selector=type=Warning,involvedObject.uid="+uid, "-o", "name")
	k.says([]string{"Events:", "Flood", "moon", "it rises", "Storm"}, "describe", "configmap", "tides")
}
