package grammar

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// runes are JSON texts of one rune each: of one to four bytes, raw and escaped, and what becomes the replacement rune.
var runes = []string{
	"a", "Z", "0", " ", ".", "-", "é", "ß", "€", "\u2028", "\ufeff", "\ufffd", "🍐", "\U0010ffff", `\u0061`, `\u00e9`, `\u20ac`, `\ufffd`, `\ud83c\udf50`, `\uD83D\uDE00`, `\n`, `\t`, `\"`, `\\`, `\/`, `\u0000`, `\u001f`, "\x7f", `\u007f`,
	`\ud800`, `\udc00`, "\xff", "\xc3",
}

// text is a JSON string of n runes as the reference counts them.
func (d *Dice) text(n int) string {
	var b strings.Builder
	b.WriteByte('"')
	simple := d.one(2)
	for range n {
		if simple {
			b.WriteByte(byte('a' + d.n(26)))
		} else {
			b.WriteString(d.of(runes))
		}
	}
	b.WriteByte('"')
	return b.String()
}

// texts are strings of a length, one of each width of runes.
func texts(n int) []string {
	if n < 0 || n > 40 {
		return nil
	}
	var list []string
	for _, r := range []string{"a", "é", "€", "🍐", `\u0061`, `\ud83c\udf50`, `\ud800`, "\xff", "\ufffd", `\u0000`} {
		list = append(list, `"`+strings.Repeat(r, n)+`"`)
	}
	return append(list, `"`+strings.Repeat("e\u0301", n/2)+strings.Repeat("x", n%2)+`"`)
}

// respelled are other spellings of a JSON string: escaped throughout, raw, changed by a rune.
func respelled(raw string) []string {
	s := tree.Unquote(raw)
	var escaped strings.Builder
	for _, r := range s {
		if r < 0x10000 {
			escaped.WriteString(`\u` + hex4(r))
		} else {
			escaped.WriteRune(r)
		}
	}
	return []string{raw, `"` + escaped.String() + `"`, tree.Quote(s + " "), tree.Quote(strings.ToUpper(s)), tree.Quote(s + "\n"), tree.Quote("\n" + s)}
}

func hex4(r rune) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}
