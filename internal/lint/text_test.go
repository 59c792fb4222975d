package lint

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A mention is something no file of the repository may contain: it is true of
// one machine only, and wrong or private everywhere else.
type mention struct {
	hints   []string // lower case; a file with none of them is not searched
	pattern *regexp.Regexp
	why     string
}

// Hints and patterns are put together from pieces so that this file does not
// match itself.
var mentions = []mention{
	{
		[]string{"/ro" + "ot/", "/wo" + "rk/", "/ho" + "me/", "/us" + "ers/"},
		regexp.MustCompile(`(?:^|[^\w./-])(?:file://)?/(?:` + "root|work|home|Users" + `)/`),
		"a path of one machine: write it relative to the repository or the module cache",
	},
	{
		[]string{"golang" + ".org", "gop" + "roxy"},
		regexp.MustCompile(`(?i)\b(?:proxy|sum)\.golang` + `\.org\b|\bgoproxy\.[a-z]+\b|\bGOPROXY=https?:`),
		"a package host: which proxy a machine downloads from is that machine's setting",
	},
	{
		[]string{"registry.", "pypi", "docker.io", "artifactory"},
		regexp.MustCompile(`(?i)\bregistry\.(?:npmjs|yarnpkg)` + `\.[a-z]+\b|\bpypi` + `\.org\b|\bindex\.docker` + `\.io\b|\bartifactory` + `\.`),
		"a package host: which registry a machine downloads from is that machine's setting",
	},
}

// checkMentions reads every text file, test data included.
func checkMentions(t *tree) []Finding {
	var found []Finding
	for _, f := range t.text {
		lower := strings.ToLower(string(f.content))
		for _, m := range mentions {
			if !slices.ContainsFunc(m.hints, func(h string) bool { return strings.Contains(lower, h) }) {
				continue
			}
			for _, at := range m.pattern.FindAllIndex(f.content, -1) {
				line := 1 + bytes.Count(f.content[:at[0]], []byte("\n"))
				if f.content[at[0]] == '\n' {
					line++
				}
				found = append(found, Finding{f.path, line, "mentions " + m.why})
			}
		}
	}
	return found
}

var (
	openTask   = regexp.MustCompile(`^(?:TODO|FIXME|XXX|HACK)\b`)
	trackedFor = regexp.MustCompile(`^(?:TODO|FIXME|XXX|HACK)\((?:[\w.-]+/[\w.-]+)?#\d+\)`)
)

// checkOpenTasks asks that work left for later is left where contributors
// look for it: in an issue, named as in TODO(#12).
func checkOpenTasks(t *tree) []Finding {
	var found []Finding
	validate := func(file string, line int, text string) {
		if openTask.MatchString(text) && !trackedFor.MatchString(text) {
			found = append(found, Finding{file, line, "a task left for later must name its issue, as in TODO(#12)"})
		}
	}
	for _, files := range t.packages {
		for _, f := range files {
			commentLines(f, func(line int, text string) { validate(f.path, line, text) })
		}
	}
	for _, f := range t.text {
		if !hashComments(f.path) || inTestdata(f.path) {
			continue
		}
		for i, l := range strings.Split(string(f.content), "\n") {
			if _, comment, ok := strings.Cut(l, "#"); ok {
				validate(f.path, i+1, strings.TrimLeft(comment, "# \t"))
			}
		}
	}
	return found
}

// hashComments reports whether comments of the file begin with #.
func hashComments(p string) bool {
	switch path.Ext(p) {
	case ".yml", ".yaml", ".sh", ".mk":
		return true
	}
	return path.Base(p) == "Makefile" || path.Dir(p) == ".ci"
}
