package rules

import "github.com/espalier-dev/espalier/finding"

const (
	celKEP   = "KEP-2876 validation rules"
	upstream = "apiextensions.k8s.io/v1 validation"
)

// Rules is the table of what Check finds. All findings are errors.
var Rules = []finding.Check{
	finding.New(RuleExpression, finding.Error, "A rule is a CEL expression that compiles, with the type bool.", celKEP),
	finding.New(RuleMessageExpression, finding.Error, "A messageExpression is a CEL expression that compiles, with the type string.", celKEP),
	finding.New(RuleType, finding.Error, "Rules apply to values whose type the schema specifies.", celKEP),
	finding.New(RuleCost, finding.Error, "A rule, for the largest object that the schema permits, costs no more than the limit for one rule.", celKEP),
	finding.New(RuleTotalCost, finding.Error, "The rules of a schema, for the largest object that it permits, cost no more than the limit for all together.", celKEP),
	finding.New(RuleOldSelf, finding.Error, "A rule reads oldSelf only where the old value can be found: not below lists that are atomic or sets.", celKEP),
	finding.New(RuleOptionalOldSelf, finding.Error, "optionalOldSelf is for rules that read oldSelf.", upstream),
	finding.New(RuleDefault, finding.Error, "A default keeps the rules that apply to it.", upstream),
}
