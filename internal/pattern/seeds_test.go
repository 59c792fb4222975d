package pattern

// frequent are the patterns that CRDs have most often, in that order.
var frequent = []string{
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`,
	`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`,
	`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
	`^[-._a-zA-Z0-9]+$`,
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
	`^([0-9]{1,5}(h|m|s|ms)){1,4}$`,
	`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`,
	`^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$`,
	`^(http|https|socks5)://.+$`,
	`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`,
	`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`,
	`^.*`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$`,
	`^[!-~]+([\t ]?[!-~]+)*$`,
	`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
	`^https://`,
	`^[1-9]+[0-9]*([EPTGMK]i|[EPTGMk])?$`,
	`^([0-9]+(\\.[0-9]+)?(ms|s|m|h))*$`,
}

// examples are texts that the frequent patterns accept, in the same order,
// except for the last one, whose authors meant a dot and wrote a backslash.
var examples = []string{
	"100Mi", "my-service.example.com", "my-service-name", "MyConditionType", "my-secret.example", "config-key_1.json",
	"app.kubernetes.io/name", "1h30m", "AsExpected", "Content-Type", "https://proxy.example.com:3128", "1d12h",
	"production", "anything", "openid.net/name/x", "some header value", "*.apps.example.com", "https://example.com/x",
	"10Gi", "1.5h",
}

// varied are patterns that use what the frequent ones do not. The first half
// are from CRDs as well.
var varied = []string{
	`^/.*?/vm/.*?`,
	`^Hostname|IPAddress|NamedAddress|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$`,
	`^.{2,}|[^./]$`,
	`[a-zA-Z0-9\-]+`,
	`(^0|([0-9]*[.])?[0-9]+((K|M|G|T|E|P)i?)?B)$`,
	`^([0-9]+(ns|us|µs|ms|s|m|h)?)+$`,
	`^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\?([^#]*))?(#(.*))?`,
	`^(?i)(Trace|Debug|Info|Warning|Error|Fatal)?$`,
	`^\PC*$`,
	`^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$`,
	``,
	`$`,
	`^`,
	`$^`,
	`a$^`,
	`(?m)^a$`,
	`(?m)$^`,
	`(?m)^$`,
	`(?s)^.*$`,
	`(?s:.)a`,
	`.`,
	`\b`,
	`\B`,
	`\bfoo\b`,
	`\Bo\B`,
	`(?m)^\b|\B$`,
	`\b$`,
	`^\B$`,
	`\A\z`,
	`(?i)kelvin`,
	`(?i)[k-s]+$`,
	`[^\x00-\x7f]`,
	`^[^a]$`,
	`^..$`,
	`\x{FFFD}`,
	`[^\x{FFFD}]`,
	`\pL+\pN*`,
	`é|ü`,
	`(a|b)*?abb`,
	`a{3,5}?b`,
	`((a*)*)*$`,
	`x*`,
	`[^\x00-\x{10FFFF}]`,
	`a[^\x00-\x{10FFFF}]*b`,
	`\Q^$.\E`,
	`\C`,
	`(?U)a+b`,
	`[[:alpha:]]+[[:^digit:]]`,
}

// texts are what every pattern is tried with, besides samples of itself.
var texts = []string{
	"", "a", "b", "0", "-", ".", "\n", "a\n", "\na", "\n\n", "a\nb", "foo", "a foo b", "xfoo", "fo o", "_", "é", "ü", "aé", "éa",
	"K", "ſ", "KELVIN", "elvin", "\x80", "\xff", "a\xffb", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\uFFFD", "\U0010FFFF", "日本", "abb", "aaab",
	"my-name", "my-name.", "-x", "a.b.c", "a..b", "10Gi", "1.5", "http://x", "https://x/y", "trace", "TRACE", "^$.", "1µs", "/a/vm/b",
}
