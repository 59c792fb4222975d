package generator

import (
	"encoding/json"
	"strings"
)

// Strings that fields of many kinds accept or refuse for a reason. They are chosen by the name of the field, and a few at random.
var (
	names = []string{
		"a", "my-name", "x1", "a.b", "web-0", "default", "kubernetes", "other.example.com", "Upper", "under_score", "-leading", "trailing-",
		"ünïcode", "", " ", "two words", "1", "123", "a..b", ".", "..", "*", "a/b", "a%2Fb", "example.com/x", "kubernetes.io/x", "k8s.io/x",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254),
		strings.Repeat("abc.", 60) + "abc", "a\tb", "a\nb", "\u0000", "名前",
	}
	paths = []string{
		"/", "/a/b", "a/b", "a/../b", "../x", "/..", "..", "", "/etc:/x", "/var/run/secrets/kubernetes.io/serviceaccount", "C:\\x", "/a//b", "..2024/x", "/" + strings.Repeat("p", 4097),
	}
	addresses = []string{
		"10.0.0.1", "1.2.3.4", "256.1.1.1", "010.1.1.1", "::1", "fe80::1", "2001:db8::1", "127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0",
		"None", "", "::ffff:1.2.3.4", "2001:db8:0:0::1", "2001:DB8::1", "1.2.3", "1.2.3.4/24", "not-an-ip", "ff02::1", "::",
	}
	blocks = []string{
		"10.0.0.0/8", "10.0.0.1/8", "0.0.0.0/0", "1.2.3.4/33", "1.2.3.4/32", "2001:db8::/32", "2001:db8::/64", "::/0", "010.0.0.0/8", "1.2.3.4", "", "x/y", "192.168.0.0/16", "192.168.1.0/24", "::ffff:10.0.0.0/104",
	}
	quantities = []any{
		"1", "2", "100m", "0", "-1", "1Gi", "128Mi", "1.5", "1e3", "abc", "1 Gi", "0.1m", "1n", "9223372036854775808", "1KiB", int64(1), 0.5, int64(-1), "", "1000m", "5Gi", "1E", "2k", "0.5", ".5", "+1", "100k", true,
	}
	spans = []string{"1s", "10m", "-1s", "abc", "1h", "0s", "24h1m", "1", "", "1h0m0s", "0.5s"}
	times = []any{
		"2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123456Z", "2024-01-01T00:00:00.123456789Z", "2024-01-01", "yesterday", "2024-01-01T00:00:00+02:00",
		"2024-02-30T00:00:00Z", "", nil, "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "2024-01-01t00:00:00z",
	}
	urls = []string{
		"https://example.com/x", "https://example.com", "http://example.com", "ftp://example.com", "https://", "example.com", "https://u:p@example.com", "https://example.com/x?y=z", "https://example.com/#f", "", "://", "/x", "https://example.com:99999",
	}
	domains = []string{
		"example.com", "*.example.com", "a.*.example.com", "*.com", "*", "a_b.example.com", "EXAMPLE.com", "example.com.", "foo", "1.2.3.4", "", "xn--bcher-kva.example", strings.Repeat("a.", 127) + "a",
	}
	schedules = []string{
		"* * * * *", "@daily", "@every 1h", "61 * * * *", "TZ=UTC * * * * *", "CRON_TZ=Europe/Berlin 0 0 * * *", "* * * *", "bad", "", "0 0 31 2 *", "*/5 0-3 1,15 * MON", "0 0 0 0 0",
	}
	images      = []string{"nginx", "nginx:latest", " nginx", "nginx ", "", "example.com/a/b@sha256:0", "UPPER", strings.Repeat("i", 300)}
	expressions = []string{
		"true", "1", "object.metadata.name == 'a'", "syntax (", "self.foo", "device.driver == 'x'", "", "request.user == 'a'", "'text'", "object.spec.replicas > 1", "variables.a", "has(object.x)", strings.Repeat("a", 200) + " == 1",
	}
	encoded = []any{"aGVsbG8=", "", "not base64!", "aGVsbG8", "e30=", int64(1), "aGVs\nbG8="}
	uids    = []string{"0f1c4f0a-5f0e-4f6c-9f8d-0a1b2c3d4e5f", "a", "", "UPPER", strings.Repeat("u", 300)}
	words   = []string{
		"Always", "Never", "None", "TCP", "UDP", "tcp", "SCTP", "Equal", "Exists", "In", "NotIn", "Delete", "Retain", "Recycle", "Immediate", "WaitForFirstConsumer", "Local",
		"Cluster", "ClientIP", "NodePort", "LoadBalancer", "ClusterIP", "ExternalName", "Default", "RollingUpdate", "OnDelete", "Recreate", "ReadWriteOnce", "Filesystem", "Block",
		"True", "False", "Unknown", "true", "*", "ro", "Bidirectional", "NoSchedule", "NoExecute", "Exact", "Prefix", "IPv4", "IPv6", "SingleStack", "PreferDualStack", "RequireDualStack",
	}
	finalizers = []string{
		"kubernetes", "foregroundDeletion", "orphan", "example.com/a", "kubernetes.io/pv-protection", "noslash", "", "UPPER/x", "a/b/c", "example.com/", "/x", "example.com/" + strings.Repeat("f", 64),
	}
	labelKeys = []string{
		"app", "example.com/app", "kubernetes.io/os", "UPPER/x", "a/b/c", "", "-x", "x_y.z", "/x", "x/", "ü", strings.Repeat("k", 64), strings.Repeat("d", 254) + "/x", "example.com/" + strings.Repeat("k", 63), " ",
		"node-role.kubernetes.io/x", "pod-template-hash",
	}
	labelValues = []any{
		"web", "", "-x", "x_y.z", "two words", "ü", strings.Repeat("v", 63), strings.Repeat("v", 64), int64(1), true, nil, "UPPER", "a/b",
	}
	annotationKeys = []string{
		"note", "example.com/note", "kubectl.kubernetes.io/last-applied-configuration", "UPPER.example.com/Note", "UPPER/x", "a/b/c", "", "-x", "container.apparmor.security.beta.kubernetes.io/web",
		"seccomp.security.alpha.kubernetes.io/pod", "volume.beta.kubernetes.io/storage-class", "kubernetes.io/ingress.class", "deprecated.daemonset.template.generation",
		"scheduler.alpha.kubernetes.io/critical-pod", "endpoints.kubernetes.io/over-capacity", "service.kubernetes.io/topology-mode", "controller.kubernetes.io/pod-deletion-cost", strings.Repeat("k", 64),
		"batch.kubernetes.io/job-tracking", "kubernetes.io/enforce-mountable-secrets", "pv.kubernetes.io/bound-by-controller", "scheduler.alpha.kubernetes.io/preferAvoidPods",
	}
	portsOf  = []any{int64(80), int64(8080), int64(0), int64(-1), int64(1), int64(65535), int64(65536), int64(443), int64(30000), int64(32767), "80"}
	integers = []any{
		int64(-1), int64(0), int64(1), int64(2), int64(3), int64(10), int64(30), int64(100), int64(101), int64(1000), int64(86400), int64(32767), int64(65535), int64(65536), int64(2147483647), int64(2147483648), int64(-2147483648),
		int64(-2147483649), int64(9223372036854775807), json.Number("9223372036854775808"), json.Number("1.5"), json.Number("1.0"), json.Number("1e2"), json.Number("-0"),
	}
	mixed = []any{
		int64(80), int64(0), int64(-1), int64(1), int64(2), int64(65536), "http", "50%", "25%", "101%", "-1%", "0%", "100%", "%", "abc", "", "1", "80", "a-very-long-port-name", "UPPER", "a--b", "1%1",
	}
	anything = []any{
		nil, "", "text", int64(0), int64(1), true, 1.5, map[string]any{}, []any{}, map[string]any{"a": "b"}, []any{"a"}, []any{int64(1)},
	}
)

// poolFor returns what a string field of this name is likely to be checked for, or nil.
func poolFor(name string) []string {
	n := strings.ToLower(name)
	switch {
	case strings.HasSuffix(n, "cidr"), strings.HasSuffix(n, "cidrs"), n == "except", n == "loadbalancersourceranges":
		return blocks
	case strings.HasSuffix(n, "ip"), strings.HasSuffix(n, "ips"), strings.Contains(n, "address"), n == "nameservers", n == "server":
		return addresses
	case strings.Contains(n, "path"):
		return paths
	case strings.Contains(n, "image"):
		return images
	case n == "schedule":
		return schedules
	case strings.Contains(n, "expression"):
		return expressions
	case strings.HasSuffix(n, "url"), strings.Contains(n, "endpoint"):
		return urls
	case strings.Contains(n, "host"), strings.Contains(n, "domain"), strings.Contains(n, "group"), n == "searches", n == "externalname":
		return domains
	case strings.HasSuffix(n, "uid"):
		return uids
	case strings.Contains(n, "duration"), strings.Contains(n, "timeout"):
		return spans
	case n == "finalizers":
		return finalizers
	case strings.Contains(n, "name"), strings.Contains(n, "key"), strings.Contains(n, "ref"), strings.HasSuffix(n, "class"), strings.Contains(n, "driver"):
		return names
	case strings.Contains(n, "policy"), strings.Contains(n, "type"), strings.Contains(n, "mode"), strings.Contains(n, "operator"), strings.Contains(n, "protocol"), strings.Contains(n, "effect"):
		return words
	}
	return nil
}

// generic are the pools of strings of fields with other names.
var generic = [][]string{names, paths, addresses, blocks, words, urls, domains, spans}
