package store

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for reported, want := range map[string]struct {
		refuse  string // part of the reason
		defects int
		upgrade string
	}{
		"2.3.8":       {refuse: "lacks", defects: 1, upgrade: "3.6.9"},
		"3.3.27":      {refuse: "lacks", defects: 1, upgrade: "3.6.9"},
		"3.4.0":       {refuse: "15220", defects: 6, upgrade: "3.4.42"},
		"3.4.24":      {refuse: "15220", defects: 6, upgrade: "3.4.42"},
		"3.4.25":      {defects: 5, upgrade: "3.4.42"},
		"3.4.31":      {defects: 4, upgrade: "3.4.42"},
		"3.4.36":      {defects: 3, upgrade: "3.4.42"},
		"3.4.38":      {defects: 1, upgrade: "3.4.42"},
		"3.4.42":      {},
		"3.4.99":      {},
		"3.5.0":       {refuse: "13766", defects: 7, upgrade: "3.5.28"},
		"3.5.2":       {refuse: "13766", defects: 7, upgrade: "3.5.28"},
		"3.5.3":       {refuse: "15220", defects: 6, upgrade: "3.5.28"},
		"3.5.7":       {refuse: "15220", defects: 6, upgrade: "3.5.28"},
		"3.5.8":       {defects: 5, upgrade: "3.5.28"},
		"3.5.12":      {defects: 5, upgrade: "3.5.28"},
		"3.5.13":      {defects: 4, upgrade: "3.5.28"},
		"3.5.17":      {defects: 4, upgrade: "3.5.28"},
		"3.5.18":      {defects: 3, upgrade: "3.5.28"},
		"3.5.21":      {defects: 3, upgrade: "3.5.28"},
		"3.5.22":      {defects: 2, upgrade: "3.5.28"},
		"3.5.27":      {defects: 1, upgrade: "3.5.28"},
		"3.5.28":      {},
		"3.6.0":       {defects: 3, upgrade: "3.6.9"},
		"3.6.1":       {defects: 3, upgrade: "3.6.9"},
		"3.6.2":       {defects: 2, upgrade: "3.6.9"},
		"3.6.8":       {defects: 1, upgrade: "3.6.9"},
		"3.6.9":       {},
		"3.7.0":       {},
		"3.7.3":       {},
		"3.8.0-alpha": {},
		"4.0.0":       {},
		"":            {refuse: "not one"},
		"new":         {refuse: "not one"},
	} {
		err := checkVersion("https://etcd-0:2379", reported)
		switch {
		case want.refuse == "" && err != nil:
			t.Errorf("%s is refused: %v", reported, err)
		case want.refuse != "" && err == nil:
			t.Errorf("%s is accepted", reported)
		case want.refuse != "" && (!strings.Contains(err.Error(), want.refuse) || !strings.Contains(err.Error(), "https://etcd-0:2379") || !strings.Contains(err.Error(), reported)):
			t.Errorf("%s: %v\ndoes not say %s", reported, err, want.refuse)
		}
		if f, _ := examine(reported); len(f.texts) != want.defects || f.upgrade != want.upgrade {
			t.Errorf("%s has %d defects, and the upgrade is to %q: %q", reported, len(f.texts), f.upgrade, f.texts)
		}
	}
}

// Every range is one, and the version to upgrade to has no defect.
func TestVersionTable(t *testing.T) {
	t.Parallel()
	refusing := true
	for _, d := range defects {
		if d.refuse && !refusing {
			t.Errorf("%s: defects that are refused come first, since the first is the reason", d.issue)
		}
		refusing = d.refuse
		for _, r := range d.versions {
			fixed := version.MustParseSemantic(r.fixed)
			if r.from != "" && !version.MustParseSemantic(r.from).LessThan(fixed) {
				t.Errorf("%s: from %s to %s is no range", d.issue, r.from, r.fixed)
			}
			f, err := examine(r.fixed)
			if err != nil {
				t.Fatal(err)
			}
			if f.upgrade == "" {
				continue
			}
			if g, err := examine(f.upgrade); err != nil || len(g.texts) > 0 {
				t.Errorf("%s is to be upgraded to %s, which has defects: %q, %v", r.fixed, f.upgrade, g.texts, err)
			}
		}
	}
}

// A rolling upgrade of etcd is told of, and stops nothing, whatever the versions are.
func TestVersionsChange(t *testing.T) {
	log := etcdtest.Capture(t)
	var n versions
	for _, step := range []struct {
		endpoint, version string
		logged, warning   string
	}{
		{"a", "3.6.8", "known defects", "1 of 1"},
		{"a", "3.6.8", "", "1 of 1"},
		{"b", "3.6.8", "known defects", "2 of 2"},
		{"a", "3.6.12", "another version", "1 of 2"},
		{"b", "3.5.2", "must not be used", "oldest 3.5.2"},
		{"b", "what", "not one", ""},
		{"b", "3.7.3", "another version", ""},
		{"b", "3.7.3", "", ""},
	} {
		log.Reset()
		n.note(step.endpoint, step.version)
		if text := log.String(); (step.logged == "") != (text == "") || !strings.Contains(text, step.logged) {
			t.Errorf("%+v: the log is %q", step, text)
		}
		if text := n.warning(); (step.warning == "") != (text == "") || !strings.Contains(text, step.warning) {
			t.Errorf("%+v: the warning is %q", step, text)
		}
	}
}
