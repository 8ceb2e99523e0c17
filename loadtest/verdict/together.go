package verdict

import "slices"

// SKU is the judgement of one SKU.
type SKU struct {
	Name string
	Judgement
}

// Together is the judgement of a race from those of its SKUs: what was oversold
// and undersold is added up, never one against the other, and the verdict is the
// worst.
func Together(skus []SKU) Judgement {
	if len(skus) == 1 {
		return skus[0].Judgement
	}
	j := Judgement{Verdict: Correct}
	worst := []Verdict{Correct, Undersold, Inconsistent, Oversold}
	for _, sku := range skus {
		j.Oversold += sku.Oversold
		j.Undersold += sku.Undersold
		if slices.Index(worst, sku.Verdict) > slices.Index(worst, j.Verdict) {
			j.Verdict = sku.Verdict
		}
		j.Findings = append(j.Findings, named(sku.Name, sku.Findings)...)
		j.Notes = append(j.Notes, named(sku.Name, sku.Notes)...)
	}
	j.Findings, j.Notes = some("", j.Findings), some("", j.Notes)
	return j
}

func named(sku string, lines []string) []string {
	var told []string
	for _, line := range lines {
		told = append(told, sku+": "+line)
	}
	return told
}
