package store

import (
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, why := range map[string]string{
		"2.3.8":       "lacks",
		"3.3.27":      "lacks",
		"3.4.0":       "15220",
		"3.4.24":      "15220",
		"3.4.25":      "",
		"3.4.99":      "",
		"3.5.0":       "13766",
		"3.5.2":       "13766",
		"3.5.3":       "15220",
		"3.5.7":       "15220",
		"3.5.8":       "",
		"3.5.21":      "",
		"3.6.0":       "",
		"3.7.3":       "",
		"3.8.0-alpha": "",
		"4.0.0":       "",
		"":            "not one",
		"new":         "not one",
	} {
		err := checkVersion("https://etcd-0:2379", version)
		switch {
		case why == "" && err != nil:
			t.Errorf("%s is refused: %v", version, err)
		case why != "" && err == nil:
			t.Errorf("%s is accepted", version)
		case why != "" && (!strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "https://etcd-0:2379") || !strings.Contains(err.Error(), version)):
			t.Errorf("%s: %v\ndoes not say %s", version, err, why)
		}
	}
}
