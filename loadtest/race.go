package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/faults"
	"example.com/shop/loadtest/lang"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/shops"
	"example.com/shop/loadtest/step"
	"example.com/shop/loadtest/web"
)

const (
	operatorTimeout = 30 * time.Second       // of a request outside of races
	buyTimeout      = 45 * time.Second       // of one try: longer than a shop tries, so that the shop's answer gives the reason
	settlePause     = 500 * time.Millisecond // between two audits, while an order whose answer was lost may still reach the books
	settleLimit     = time.Minute            // a shop ends each transaction within half of this time
)

// loadTest is one run of the program: the races, or the page.
type loadTest struct {
	raceCommand
	screen screen
	log    *slog.Logger  // for errors of the shops that the program starts
	limit  time.Duration // of a race: a buyer without an answer by then counts as an error
}

// run holds the races and reports the results, or serves the page. It returns an app.UsageError if the flags ask for
// something impossible, and errBroken if a strategy was not as it is designed to be.
func (l loadTest) run(ctx context.Context) (err error) {
	stop, err := l.Start(ctx, l.screen.print)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	chosen, shop, err := l.choose(ctx)
	if err != nil {
		return err
	}
	if l.UI != "" {
		return l.serve(ctx, chosen, shop)
	}
	r := l.report(shop)
	var lead strings.Builder
	database, redis := result.Server(r.Machine.Database, l.Lang), result.Server(r.Machine.Redis, l.Lang)
	lang.Hang(&lead, screenWidth, "", 0, r.Run.Lead(l.Lang))
	lang.Hang(&lead, screenWidth, "", 0, lang.Text(l.Lang, "Think time between reading stock and writing it: %v.", l.Think))
	lang.Hang(&lead, screenWidth, "", 0, lang.Text(l.Lang, "Database: %s. Redis: %s.", database, redis))
	if _, err := fmt.Fprintln(l.screen.out, lead.String()); err != nil {
		return err
	}
	if err := l.races(ctx, chosen, &r); err != nil {
		// The results so far are shown, but not saved: a file would look like a complete report.
		return errors.Join(err, l.screen.show(r))
	}
	if err := errors.Join(l.screen.show(r), l.save(r)); err != nil {
		return err
	}
	if r.Broken() {
		return errBroken
	}
	return nil
}

// unraced returns why a race of all strategies leaves this one out, and what shows its mistake; empty if it does not.
func unraced(strategy string) (why, instead string) {
	switch strategy {
	case "reentrant":
		return "all its buyers wait until they give up, after two minutes", "go run ./loadtest explore reentrant"
	case "late-payment", "late-payment-guarded":
		return "in a race no payment comes too late", "go run ./loadtest explore " + strategy + " --crash"
	}
	return "", ""
}

// races holds the races one after the other and adds their results to r.
func (l loadTest) races(ctx context.Context, chosen []shopclient.Strategy, r *result.Report) error {
	for _, s := range chosen {
		if why, instead := unraced(s.Name); why != "" && l.all() {
			s.Available, s.Reason = false, why+": "+instead
		}
		if !s.Available {
			r.NotRun = append(r.NotRun, result.NotRun{Name: s.Name, Reason: s.Reason})
			continue
		}
		tally := new(crowd.Tally)
		end := l.screen.follow(ctx, s.Name, l.Buyers, tally)
		held, err := l.race(ctx, s, tally)
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		r.Strategies = append(r.Strategies, held)
	}
	return nil
}

// choose looks up --strategies in the shop's table, and also returns the shop's description of itself. For "all", a
// strategy without its server is not Available.
func (l loadTest) choose(ctx context.Context) (chosen []shopclient.Strategy, shop shopclient.Lab, err error) {
	set, err := l.shops(1).Open(ctx)
	if err != nil {
		return nil, shop, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()

	conns := shopclient.NewConnections(1, operatorTimeout)
	defer conns.CloseIdleConnections()
	shop, err = shopclient.New(set.URLs[0], conns).Lab(ctx)
	if err != nil {
		return nil, shop, fmt.Errorf("%s: %w; start a teaching shop with: go run ./cmd/lab", withoutPassword(set.URLs[0]), err)
	}
	if l.all() {
		return shop.Strategies, shop, nil
	}
	if chosen, err = shopclient.Pick(shop.Strategies, l.Strategies); err != nil {
		err = app.UsageError{Err: &web.InputError{Field: "strategies", Text: err.Error()}}
	}
	return chosen, shop, err
}

// race holds the race of one strategy, in its own shops, and judges the result.
func (l loadTest) race(ctx context.Context, s shopclient.Strategy, tally *crowd.Tally) (r result.Strategy, err error) {
	set, err := l.shops(l.Instances).Open(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()

	conns := shopclient.NewConnections(1, operatorTimeout)
	defer conns.CloseIdleConnections()
	operator := shopclient.New(set.URLs[0], conns)
	sku := fmt.Sprintf("lab-%s-%s", s.Name, strings.ToLower(rand.Text()[:8])) // a new SKU for each race
	if err := operator.Create(ctx, sku, l.Stock); err != nil {
		return r, err
	}
	race := crowd.Race{
		Strategy: s.Name, SKUs: []string{sku}, Buyers: l.Buyers, Duration: l.Duration, Think: l.Think,
		RequestTimeout: buyTimeout, Timeout: l.limit, Tally: tally,
		Patience: crowd.Patience{Tries: 10, Pause: 50 * time.Millisecond, MaxPause: 5 * time.Second}, // enough for a queue of a minute
	}
	for _, url := range set.URLs {
		race.Shops = append(race.Shops, func(conns *http.Client) *shopclient.Client { return shopclient.New(url, conns) })
	}
	log, err := race.Run(ctx)
	if err != nil {
		return r, err
	}
	told := log.Summary()
	books, err := audit(ctx, operator, sku, told.Unknown > 0)
	if err != nil {
		return r, fmt.Errorf("audit: %w", err)
	}
	// The recheck comes after the last audit, because an order may reach the books late.
	if err := race.Recheck(ctx, log); err != nil {
		return r, fmt.Errorf("recheck: %w", err)
	}
	r = result.Strategy{
		Strategy: s, SKU: sku, Supplied: l.Stock, Orders: books.Books.Orders, UnitsSold: books.Books.OrderedUnits,
		StockLeft: books.Books.Available, Summary: told, Series: log.Series(), Judgement: result.Judge(l.Stock, books, log),
	}
	r.Notes = append(log.Notes(), r.Notes...)
	return r, nil
}

// audit asks for the books of a SKU. With settle, orders may still reach the books: it asks until two
// audits in a row agree.
func audit(ctx context.Context, operator *shopclient.Client, sku string, settle bool) (books shopclient.Audit, err error) {
	for end := time.Now().Add(settleLimit); time.Now().Before(end); {
		before := books
		books, err = operator.Audit(ctx, sku)
		if err != nil || !settle || reflect.DeepEqual(books, before) {
			return books, err
		}
		if !shopclient.Pause(ctx, settlePause) {
			return books, context.Cause(ctx)
		}
	}
	return books, errors.New("the books still change, although the load test has stopped buying")
}

// shops returns the settings of a race's shops: instances to start, unless --target names a running shop.
func (l loadTest) shops(instances int) shops.Instances {
	return shops.Instances{Target: l.Target, Count: instances, Servers: l.Servers, Log: l.log}
}

// report returns a report without races.
func (l loadTest) report(shop shopclient.Lab) result.Report {
	m := result.ThisMachine()
	m.DatabaseVersion, m.RedisVersion = shop.Database, shop.Redis
	m.Database, m.Redis = l.Stores()
	if l.Target != "" {
		where := "behind the shop at " + withoutPassword(l.Target)
		m.Database, m.Redis = where, where
	}
	run := result.Run{
		Buyers: int64(l.Buyers), Stock: l.Stock, Target: withoutPassword(l.Target), ThinkMS: crowd.Milliseconds(l.Think),
		Seconds: l.Duration.Seconds(), Command: l.command(),
	}
	if l.Target == "" {
		run.Instances = l.Instances
	}
	return result.Report{Version: result.Version, StartedAt: time.Now().UTC(), NotRun: []result.NotRun{}, Machine: m, Run: run}
}

// save writes the report to the files that the flags name.
func (l loadTest) save(r result.Report) error {
	err := errors.Join(
		result.Save(l.HTML, l.screen.json, func(w io.Writer) error { return web.WriteReport(w, r, l.Lang) }),
		result.Save(l.SVG, l.screen.json, func(w io.Writer) error { return web.WritePicture(w, r, l.Lang) }),
		result.Save(l.CSV, l.screen.json, result.CSV(r)),
		result.Save(l.JSON, l.screen.json, result.JSON(r)))
	if err == nil && l.HTML != "" {
		fmt.Fprintf(l.screen.out, "\n%s\n", lang.Text(l.Lang, "The report is in %s", l.HTML))
	}
	return err
}

// serve shows the page until ctx ends.
func (l loadTest) serve(ctx context.Context, chosen []shopclient.Strategy, shop shopclient.Lab) (err error) {
	player := step.NewPlayer(l.Servers)
	defer func() { err = errors.Join(err, player.Close()) }()
	report := func(line string) { fmt.Fprintln(l.screen.out, line) }
	if err := web.Serve(ctx, l.UI, l.lab(chosen, shop, player), report); err != nil {
		return fmt.Errorf("--ui: %w", err)
	}
	return nil
}

// lab returns the page's view of the load test. The flags pre-fill the form.
func (l loadTest) lab(chosen []shopclient.Strategy, shop shopclient.Lab, player *step.Player) web.Lab {
	first := web.Choice{Buyers: l.Buyers, Stock: l.Stock, Instances: l.Instances, ThinkMS: crowd.Milliseconds(l.Think), Together: true}
	for _, s := range chosen {
		first.Strategies = append(first.Strategies, s.Name)
	}
	lessons := step.Lessons()
	if l.Target != "" { // a play kills requests, and so needs shops of its own
		first.Instances, lessons = 0, nil
	}
	return web.Lab{
		Strategies: shop.Strategies, Unraced: unraced, Lessons: lessons, Defaults: first,
		Check: func(c web.Choice) (web.Choice, error) {
			l := l.with(c)
			l.From = "embedded" // containers run by now, and have addresses
			if c.Together && l.shops(l.Instances).CheckDescriptors(len(c.Strategies), c.Buyers) != nil {
				c.Together = false
			}
			return c, l.Validate()
		},
		Report: func(c web.Choice) result.Report { return l.with(c).report(shop) },
		Race: func(ctx context.Context, c web.Choice, s shopclient.Strategy, tally *crowd.Tally) (result.Strategy, error) {
			return l.with(c).race(ctx, s, tally)
		},
		Position: func(ctx context.Context, name string, loose bool) (step.Position, error) {
			if loose {
				return player.PlayLoose(ctx, name)
			}
			return player.Position(ctx, name)
		},
		Record: player.Record, Explore: player.Explore, KillPrimary: faults.KillPrimary, CanKillPrimary: faults.CanKillPrimary,
	}
}

// with returns a load test with the choice in place of its flags.
func (l loadTest) with(c web.Choice) loadTest {
	l.Strategies, l.Buyers, l.Stock = slices.Clone(c.Strategies), c.Buyers, c.Stock
	l.Think = time.Duration(c.ThinkMS * float64(time.Millisecond))
	if l.Target == "" {
		l.Instances = c.Instances
	}
	return l
}
