package evidence

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// Size is the range in which a bound should be.
type Size struct {
	Least uint64 // a smaller bound refuses real values
	Most  uint64 // a larger bound allows nothing more that is real
	Known bool   // the schema shows it; otherwise it is what is usual
	Why   string // in one clause
	// Tight is a bound to try where nothing is known and Least is still too much. It is
	// equal to Least where something is known.
	Tight uint64
}

// What is usual where nothing shows the size.
const (
	usualText, generousText       = 256, 4096
	usualItems, generousItems     = 32, 1024
	usualMembers, generousMembers = 64, 1024
	tightText, tightItems         = 64, 8
)

// Of returns the range for a bound, one of maxLength, maxItems and maxProperties. name is
// that of the field, or of the list or map around it.
func Of(keyword, name string, s *syntax.Schema) Size {
	var size Size
	switch keyword {
	case "maxLength":
		size = text(name, s)
	case "maxItems":
		size = items(s)
	default:
		size = cmp.Or(stated(s.Description, entries), Size{Least: usualMembers, Most: generousMembers, Why: "nothing in the schema shows how many there are"})
	}
	size = atLeast(size, keyword, s)
	size.Tight = size.Least
	if !size.Known {
		size.Tight = tightItems
		if keyword == "maxLength" {
			size.Tight = tightText
		}
	}
	return size
}

func known(least, most uint64, why string) Size {
	return Size{Least: least, Most: most, Known: true, Why: why}
}

// atLeast raises a size to that of values in the schema.
func atLeast(size Size, keyword string, s *syntax.Schema) Size {
	raise := func(n int, why string) {
		if uint64(max(n, 0)) > size.Least {
			size.Least, size.Why, size.Known = uint64(n), fmt.Sprintf("%s %d", why, n), true
			size.Most = max(size.Most, size.Least)
		}
	}
	for _, v := range []struct {
		value *syntax.JSON
		why   string
	}{{s.Default, "the default has"}, {s.Rare().Example, "the example has"}} {
		if v.value != nil {
			raise(measure(v.value.Raw), v.why)
		}
	}
	for i := range s.Enum {
		raise(measure(s.Enum[i].Raw), "a value of the enum has")
	}
	for _, low := range []struct {
		keyword string
		value   *int64
	}{{"maxLength", s.MinLength}, {"maxItems", s.MinItems}, {"maxProperties", s.MinProperties}} {
		if low.keyword == keyword && low.value != nil {
			raise(int(*low.value), "the lower bound is")
		}
	}
	return size
}

// measure returns the characters, items or members of a value.
func measure(raw []byte) int {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return 0
	}
	switch v := value.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// formats are the formats that API servers check and what fits into them.
var formats = map[string]struct {
	most uint64
	why  string
}{
	"ipv4": {15, "an IPv4 address has at most 15 characters"}, "ipv6": {45, "an IPv6 address has at most 45 characters"},
	"cidr": {49, "a CIDR has at most 49 characters"}, "mac": {59, "a MAC address has at most 59 characters"},
	"uuid": {36, "a UUID has at most 36 characters"}, "uuid3": {36, "a UUID has at most 36 characters"}, "uuid4": {36, "a UUID has at most 36 characters"}, "uuid5": {36, "a UUID has at most 36 characters"},
	"hexcolor": {7, "a hexadecimal color has at most 7 characters"}, "k8s-short-name": {63, "the format allows 63 characters"}, "k8s-long-name": {253, "the format allows 253 characters"},
}

func text(name string, s *syntax.Schema) Size {
	if f, ok := formats[s.Format]; ok {
		return known(f.most, f.most, f.why)
	}
	if n, ok := longestMatch(s.Pattern); ok {
		return known(n, n, fmt.Sprintf("the pattern allows at most %d characters", n))
	}
	if size := stated(s.Description, characters); size.Known {
		return size
	}
	if s.Format == "byte" {
		return content
	}
	size := Size{Least: usualText, Most: generousText, Why: "nothing in the schema shows how long it is"}
	for _, class := range []Size{byWords(words(name)), byWords(words(s.Format)), described(s.Description)} {
		if class.Known && (!size.Known || class.Least > size.Least) {
			size = class
		}
	}
	return size
}

func items(s *syntax.Schema) Size {
	if n, why := distinct(s); n > 0 {
		return known(n, n, why)
	}
	return cmp.Or(stated(s.Description, entries), Size{Least: usualItems, Most: generousItems, Why: "nothing in the schema shows how many there are"})
}

// distinct returns how many different items a set or a map has.
func distinct(s *syntax.Schema) (uint64, string) {
	item := s.ItemSchema()
	if s.ListType == nil || item == nil {
		return 0, ""
	}
	switch {
	case *s.ListType == "map" && len(s.ListMapKeys) == 1:
		item = item.Property(s.ListMapKeys[0])
	case *s.ListType != "set":
		return 0, ""
	}
	if item == nil || len(item.Enum) == 0 {
		return 0, ""
	}
	return uint64(len(item.Enum)), fmt.Sprintf("items are distinct, and the enum has %d", len(item.Enum))
}

// A limit in a description: "at most 63 characters", "between 1 and 63 items".
var (
	characters = regexp.MustCompile(`(?i)(?:at most|maximum(?: length)?(?: of| is)?|up to|(?:no|not be|cannot be) (?:more|longer|greater) than|not exceed|limited to|limit of|and|to|-|–) ?(\d[\d,]{0,8}) (?:\w+ )?(?:characters|chars|letters|bytes)\b`)
	entries    = regexp.MustCompile(`(?i)(?:at most|maximum(?: number)?(?: of| is)?|up to|no more than|not exceed|limited to|limit of|between \d+ and) (\d[\d,]{0,8}) (?:\w+ )?(\w+s)\b`)

	sentences = regexp.MustCompile(`[.!?;]\s|\n\s*\n`)
	// A limit of a part is none of the whole.
	ofPart = regexp.MustCompile(`(?i)\b(each|every|per|segments?|labels?|parts?|components?|prefix|suffix|first|last)\b`)
	// What a list does not consist of.
	units = regexp.MustCompile(`(?i)^(milliseconds|seconds|minutes|hours|days|weeks|months|years|characters|chars|letters|digits|bytes|times|retries|attempts|replicas|megabytes|gigabytes|has|is|was|alphanumerics)$`)
)

// maxDescription is how much of a description is read.
const maxDescription = 8 << 10

// stated returns the limit that a description states, the largest if there are several.
func stated(description string, limit *regexp.Regexp) Size {
	var most uint64
	for _, sentence := range sentences.Split(head(description), -1) {
		m := limit.FindStringSubmatch(sentence)
		if m == nil || ofPart.MatchString(sentence) || len(m) > 2 && units.MatchString(m[2]) {
			continue
		}
		if n, err := strconv.ParseUint(strings.ReplaceAll(m[1], ",", ""), 10, 32); err == nil {
			most = max(most, n)
		}
	}
	if most == 0 {
		return Size{}
	}
	return known(most, most, fmt.Sprintf("the description states a limit of %d", most))
}

func head(description string) string {
	if len(description) > maxDescription {
		return description[:maxDescription]
	}
	return description
}

// The sizes of what strings are for.
var (
	content = known(256<<10, 1<<20, "it holds content, such as a certificate or a document")
	prose   = known(32<<10, 32<<10, "messages have at most 32768 characters, as in conditions")
	url     = known(2048, 8192, "URLs have up to 2048 characters, and servers accept 8192")
	arn     = known(2048, 2048, "ARNs have at most 2048 characters")
	id      = known(2048, 2048, "identifiers of cloud resources have up to 2048 characters")
	path    = known(4096, 4096, "paths have at most 4096 characters")
	image   = known(1024, 1024, "references to images have a registry, a name, a tag and a digest, together at most 1024 characters")
	email   = known(320, 320, "email addresses have at most 320 characters")
	object  = known(253, 253, "names of objects have at most 253 characters")
	dns     = known(253, 253, "DNS names have at most 253 characters")
	label   = known(317, 317, "keys of labels have at most 317 characters, with a prefix")
	address = known(253, 253, "addresses are IP addresses or DNS names, of at most 253 characters")
)

// classes says what a word in the name of a field shows. Words are in the singular.
var classes = map[string]Size{
	"arn": arn, "url": url, "uri": url, "endpoint": url, "link": url, "href": url, "webhook": url, "issuer": url, "server": url, "audience": url, "scope": url, "origin": url, "redirect": url, "location": url,
	"id": id, "uid": id, "identifier": id, "resource": id, "path": path, "dir": path, "directory": path, "file": path, "filename": path, "image": image, "email": email,
	"name": object, "namespace": object, "ref": object, "reference": object, "class": object, "secret": object, "account": object, "kind": object, "group": object, "zone": object, "region": object, "cluster": object, "node": object,
	"host": dns, "hostname": dns, "domain": dns, "dns": dns, "fqdn": dns, "sni": dns, "san": dns, "address": address, "ip": address, "cidr": address, "gateway": address, "proxy": url,
	"label": label, "key": label, "annotation": prose, "message": prose, "description": prose, "reason": prose, "comment": prose, "text": prose, "title": prose, "note": prose, "summary": prose, "banner": prose,
	"pem": content, "cert": content, "certificate": content, "bundle": content, "ca": content, "data": content, "token": content, "password": content, "script": content, "template": content, "yaml": content, "json": content, "toml": content, "xml": content, "html": content,
	"config": content, "configuration": content, "manifest": content, "body": content, "content": content, "payload": content, "query": content, "expression": content, "policy": content, "document": content, "raw": content, "code": content, "sql": content, "regex": content, "filter": content,
	"command": content, "arg": content, "argument": content, "value": content, "input": content, "output": content, "log": content, "schema": content, "definition": content, "statement": content, "rego": content, "metadata": content, "patch": content, "source": content,
}

// byWords returns the largest class that a word shows.
func byWords(list []string) Size {
	var most Size
	for _, w := range list {
		class, ok := classes[w]
		if !ok {
			class, ok = classes[strings.TrimSuffix(w, "s")]
		}
		if !ok {
			class, ok = classes[strings.TrimSuffix(w, "es")]
		}
		if ok && class.Least > most.Least {
			most = class
		}
	}
	return most
}

// words splits a name such as caBundleURL into ca, bundle and url.
func words(name string) []string {
	var list []string
	r := []rune(name)
	begin := 0
	for i := range r {
		switch {
		case !unicode.IsLetter(r[i]) && !unicode.IsDigit(r[i]):
			list = append(list, string(r[begin:i]))
			begin = i + 1
		case i > begin && unicode.IsUpper(r[i]) && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]) && r[i+1] != 's'):
			list = append(list, string(r[begin:i]))
			begin = i
		}
	}
	list = append(list, string(r[begin:]))
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// mentions are words in descriptions that show what a field holds.
var mentions = []struct {
	words *regexp.Regexp
	size  Size
}{
	{regexp.MustCompile(`(?i)\b(PEM|base64|certificate data|CA bundle|JSON|YAML|script|template|Rego|SQL|markdown|CEL expression|PromQL|regular expression|regex|document|encoded|private key|public key)\b`), content},
	{regexp.MustCompile(`\bARNs?\b|Amazon Resource Name`), arn},
	{regexp.MustCompile(`(?i)\bUR[LI]s?\b|https?://`), url},
	{regexp.MustCompile(`(?i)\b(file ?path|directory|mount ?path)\b`), path},
	{regexp.MustCompile(`(?i)\b(container image|image reference)\b`), image},
	{regexp.MustCompile(`(?i)\be-?mail\b`), email},
	{regexp.MustCompile(`(?i)\b(host ?names?|DNS|FQDN|domain names?)\b`), dns},
	{regexp.MustCompile(`(?i)projects/|/subscriptions/|\bself ?link\b|\bresource ID\b`), id},
}

func described(description string) Size {
	var most Size
	text := head(description)
	for _, m := range mentions {
		if m.size.Least > most.Least && m.words.MatchString(text) {
			most = m.size
		}
	}
	return most
}
