package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/shop/loadtest/lang"
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

var (
	ascii  = regexp.MustCompile(`[!-~]+`)
	latin  = regexp.MustCompile(`^[A-Za-z]+(?:'[a-z]+)?$`)
	unlike = regexp.MustCompile(`[:;,?!] *\p{Han}|\p{Han} *[:;,?!]|\p{Han}[()"]|[()"]\p{Han}|\p{Han} \p{Han}|[，。；：、？！）”] +[^ |]|[^ ] +[，。；：、？！）”]`)
)

// wantChinese fails if part of a text is not Chinese, or is not set as Chinese: with wide marks, without blanks beside them.
func wantChinese(t *testing.T, where, text string) {
	t.Helper()
	if processor := result.ThisMachine().CPUModel; processor != "" { // its maker names it
		text = strings.ReplaceAll(text, processor, "")
	}
	same := strings.Fields(sameInChinese)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		wrong := unlike.FindAllString(line, -1)
		for _, word := range ascii.FindAllString(line, -1) {
			word = strings.Trim(word, `.,;:?!()'"`)
			if len(word) > 1 && latin.MatchString(word) && word != strings.ToUpper(word) && !slices.Contains(same, word) {
				wrong = append(wrong, word)
			}
		}
		if len(wrong) > 0 {
			t.Errorf("%s: %q in %q", where, wrong, line)
		}
	}
}

// The pages are about code, so that only the marks are looked at.
func TestChinese_pages(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../README.zh-CN.md", "../docs/lessons.zh-CN.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page := regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`|^    .*?$|\\]\\([^)]*\\)").ReplaceAllString(string(text), "1")
		for line := range strings.Lines(page) {
			if wrong := unlike.FindAllString(strings.TrimSpace(line), -1); len(wrong) > 0 {
				t.Errorf("%s: %q in %q", file, wrong, line)
			}
		}
	}
}

func TestChinese_catalogue(t *testing.T) {
	t.Parallel()
	var texts map[string]string
	if err := json.Unmarshal(lang.Chinese, &texts); err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile(`%[.\d]*[a-z]|\{\w+\}`)
	for english, chinese := range texts {
		wantChinese(t, english, values.ReplaceAllString(chinese, "1"))
	}
}

// The commands print and write Chinese.
func TestChinese_commands(t *testing.T) {
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "report.html"), filepath.Join(dir, "picture.svg")
	sent := regexp.MustCompile(`(?m)^ +[\d.]+ +[A-Z]{3}.*(\n {10}.*)*`) // a statement or command, with its answer
	for _, command := range []string{
		"--buyers 60 --stock 6 --think 10ms --html " + page + " --svg " + picture,
		"--buyers 20 --stock 2 --think 10ms --strategies all",
		"step", "step setnx-expire", "step slow-work", "step pre-deduct-only", "step late-payment",
		"explore none", "explore conditional",
	} {
		code, stdout, stderr := start(t, append(strings.Fields(command), "--lang", "zh")...)
		if code != 0 {
			t.Errorf("%s: exit code %d", command, code)
		}
		wantChinese(t, command, sent.ReplaceAllString(strings.ReplaceAll(stdout.String()+stderr.String(), dir, ""), ""))
	}
	for _, file := range []string{page, picture} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tags := regexp.MustCompile(`(?s)<(style|code)>.*?</|<[^>]*aria-label="([^"]*)"[^>]*>|<[^>]*>`)
		wantChinese(t, file, tags.ReplaceAllString(string(text), "\n$2\n"))
	}
}

// The page shows Chinese, except in code. Each button's text is checked by itself.
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
	look("#lesson/setnx-expire/2", `!document.getElementById("question").hidden`)
	look("#lesson/setnx-expire/9", `!document.getElementById("lesson-end").hidden`)
	look("#game/none:Aba", `!document.getElementById("game-end").hidden`)
	look("#failover", `!document.getElementById("failover").hidden`)
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(ui.url+"?lang=zh"), chromedp.WaitVisible("#rows li"), chromedp.Click("#run"))
	look("", `document.querySelectorAll("#result .strategy").length === 3`)
	p.leave()
}
