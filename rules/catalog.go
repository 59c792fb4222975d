package rules

// RuleInfo describes what Check looks for.
type RuleInfo struct {
	ID          string // stable
	Explanation string
	Source      string // the document it comes from
}

const (
	celKEP   = "KEP-2876 validation rules"
	upstream = "apiextensions.k8s.io/v1 validation"
)

// Rules is the table of what Check finds. All findings are errors.
var Rules = []RuleInfo{
	{RuleExpression, "A rule is a CEL expression that compiles, with the type bool.", celKEP},
	{RuleMessageExpression, "A messageExpression is a CEL expression that compiles, with the type string.", celKEP},
	{RuleType, "Rules apply to values whose type the schema specifies.", celKEP},
	{RuleCost, "A rule, for the largest object that the schema permits, costs no more than the limit for one rule.", celKEP},
	{RuleTotalCost, "The rules of a schema, for the largest object that it permits, cost no more than the limit for all together.", celKEP},
	{RuleOldSelf, "A rule reads oldSelf only where the old value can be found: not below lists that are atomic or sets.", celKEP},
	{RuleOptionalOldSelf, "optionalOldSelf is for rules that read oldSelf.", upstream},
	{RuleDefault, "A default keeps the rules that apply to it.", upstream},
}
