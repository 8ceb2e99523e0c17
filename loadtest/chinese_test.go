package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/shop/loadtest/result"
)

// sameInChinese are names, words of code, and units. A word with a digit, a mark or no small letter is code by itself.
const sameInChinese = `
	Docker Go HTML Java JavaScript JSON Lua MariaDB MySQL PostgreSQL Redis Redisson SQLite ZooKeeper linux
	batch conditional lanes mutex none optimistic redis redlock reentrant serializable setex zookeeper
	all explore go run step
	available id key orders owner paid status ttl
	if then return end
	channel fence goroutine hash map nil synchronized watch worker
	hot few deep cold
	ms s`

// wantChinese fails if there is an English word in a text.
func wantChinese(t *testing.T, where, text string) {
	t.Helper()
	if processor := result.ThisMachine().CPUModel; processor != "" { // its maker names it
		text = strings.ReplaceAll(text, processor, "")
	}
	same, word := strings.Fields(sameInChinese), regexp.MustCompile(`^[A-Za-z]+(?:'[a-z]+)?$`)
	for line := range strings.Lines(text) {
		for _, text := range regexp.MustCompile(`[!-~]+`).FindAllString(line, -1) {
			text = strings.Trim(text, `.,;:?!()'"`)
			if len(text) > 1 && word.MatchString(text) && text != strings.ToUpper(text) && !slices.Contains(same, text) {
				t.Errorf("%s: %q in %q", where, text, line)
			}
		}
	}
}

func TestChinese_commands(t *testing.T) {
	sent := regexp.MustCompile(`(?m)^ +[\d.]+ +[A-Z]{3}.*(\n {10}.*)*`) // a statement or command, with its answer
	for _, command := range []string{"--buyers 60 --stock 6 --think 10ms", "step", "step late-payment", "explore none"} {
		code, stdout, stderr := start(t, append(strings.Fields(command), "--lang", "zh")...)
		if code != 0 {
			t.Errorf("%s: exit code %d", command, code)
		}
		wantChinese(t, command, sent.ReplaceAllString(stdout.String()+stderr.String(), ""))
	}
}

// Each view, except its code. Each button's text is checked by itself.
func TestChinese_page(t *testing.T) {
	ui, p := visitUI(t, "--buyers", "60", "--stock", "6", "--think", "10ms")
	look := func(place, ready string) {
		p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(ui.url+"?lang=zh"+place))
		p.await(ready)
		wantChinese(t, place, p.text(`(() => {
			for (const one of document.querySelectorAll("code, pre, kbd, .languages")) one.remove();
			for (const one of document.querySelectorAll(".sql .text, .redis .text")) one.textContent = "CODE";
			for (const one of document.querySelectorAll("button, select, label, li, .state, .keys span")) one.style.display = "block";
			const named = [...document.querySelectorAll("[aria-label], [title]")].map((one) => one.ariaLabel || one.title);
			return [document.title, document.body.innerText, ...named].join("\n");
		})()`))
	}
	look("#race", `document.querySelectorAll("#rows li").length === 3`)
	look("#lesson/setnx-expire/9", `!document.getElementById("lesson-end").hidden`)
	look("#game/none:Aba", `!document.getElementById("game-end").hidden`)
	look("#failover", `!document.getElementById("failover").hidden`)
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(ui.url+"?lang=zh"), chromedp.WaitVisible("#rows li"), chromedp.Click("#run"))
	look("", `document.querySelectorAll("#result .strategy").length === 3`)
	p.leave()
}
