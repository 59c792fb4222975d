package docgen

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"html/template"
	"io"
	"strconv"

	"github.com/espalier-dev/espalier/crd"
)

var (
	//go:embed page.html
	markup string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// sheet is what the template is executed with.
type sheet struct {
	*crd.CRD
	Shown  []*version
	First  *version
	Policy string
	Style  template.CSS
	Script template.JS
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"prose":    prose,
	"bare":     bare,
	"count":    count,
	"skeleton": skeleton,
}).Parse(markup))

// HTML writes one page about a CRD that needs nothing else: no network,
// and without scripts it lacks the search only.
func HTML(w io.Writer, d *crd.CRD, o Options) error {
	list, err := outline(d, o)
	if err != nil {
		return err
	}
	s := sheet{
		CRD: d, Shown: list, First: first(d, list),
		Style: template.CSS(style), Script: template.JS(script),
		// Even if something slipped through, a browser would not run it.
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + digest(style) + "; script-src " + digest(script),
	}
	for _, v := range list {
		prefix := v.Name + "/"
		if v == s.First {
			prefix = ""
		}
		v.Root.identify(prefix)
	}
	return pageTemplate.Execute(w, s)
}

// first is the version to show before others.
func first(d *crd.CRD, list []*version) *version {
	preferred := Preferred(d)
	for _, v := range list {
		if v.Version == preferred {
			return v
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

// Preferred returns the version to show if the user names none: the storage
// version if it is served, or else the first that is served and not deprecated,
// or else the first. It is nil if there are no versions.
func Preferred(d *crd.CRD) *crd.Version {
	var served *crd.Version
	for i := range d.Versions {
		v := &d.Versions[i]
		if v.Served && v.Storage {
			return v
		}
		if v.Served && !v.Deprecated && served == nil {
			served = v
		}
	}
	if served == nil && len(d.Versions) > 0 {
		return &d.Versions[0]
	}
	return served
}

// Own are the fields that set the kind apart.
func (v *version) Own() []*field { return v.split(false) }

// Standard are the fields that every object has.
func (v *version) Standard() []*field { return v.split(true) }

func (v *version) split(standard bool) []*field {
	var list []*field
	for _, f := range v.Root.Fields {
		if (f.Name == "apiVersion" || f.Name == "kind" || f.Name == "metadata") == standard {
			list = append(list, f)
		}
	}
	return list
}

// identify gives the fields below f the names that links lead to.
func (f *field) identify(prefix string) {
	for _, child := range f.Fields {
		if child.Path != "" {
			child.ID = prefix + child.Path
		}
		child.identify(prefix)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// count says how many there are.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
