package report

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"io"
)

var (
	//go:embed plan.html
	planMarkup string
	//go:embed plan.css
	planStyle string
)

var planPage = template.Must(template.New("plan").Funcs(template.FuncMap{
	"headline": (*Plan).headline, "effects": (*Plan).effects, "number": number, "counted": counted, "place": groupPlace, "message": groupMessage, "examples": examples, "names": names, "lines": outcomeLines, "shortened": shortened, "safe": printable,
}).Parse(planMarkup))

// html writes one page that needs nothing else, and no scripts.
func (all Plans) html(w io.Writer) error {
	sum := sha256.Sum256([]byte(planStyle))
	b := bufio.NewWriter(w)
	err := planPage.Execute(b, struct {
		Plans  Plans
		Style  template.CSS
		Policy string
	}{all, template.CSS(planStyle), "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"})
	if err != nil {
		return err
	}
	return b.Flush()
}
