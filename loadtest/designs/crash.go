package designs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/testserver"
)

// sale is what the parent tells a seller's process. It goes by the environment: addresses may hold passwords.
type sale struct {
	Design string `json:"design"`
	DSN    string `json:"dsn"`
	Redis  string `json:"redis"`
	SKU    string `json:"sku"`
	Buyers int    `json:"buyers"`
}

const saleVariable = "DESIGNS_SALE"

// receipt is one answer of a seller, as a line that the buyer keeps.
type receipt struct {
	answer   string // sold, refused or failed
	order    string
	began    time.Time // when the buyer asked
	answered time.Time
	reason   string // of a failure
}

// The answers.
const (
	sold    = "sold"
	refused = "refused"
	failed  = "failed"
)

// Sell is the whole program of a seller's process. Buyers ask the design that the parent chose, again and again, and
// write a receipt of each answer before they ask again. A buyer who is told that the SKU is sold out leaves. Sell ends
// when the parent closes stdin or has died.
func Sell(ctx context.Context, all []Design, stdin io.Reader, receipts io.Writer) (err error) {
	var s sale
	if err := json.Unmarshal([]byte(os.Getenv(saleVariable)), &s); err != nil {
		return fmt.Errorf("%s: %w", saleVariable, err)
	}
	i := slices.IndexFunc(all, func(d Design) bool { return d.Name == s.Design })
	if i < 0 {
		return fmt.Errorf("there is no design %q", s.Design)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	on, disconnect, err := connect(ctx, s.DSN, s.Redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disconnect()) }()
	seller, err := all[i].Open(ctx, on)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Design, err)
	}
	var buyers sync.WaitGroup
	for n := range s.Buyers {
		buyers.Go(func() { s.buy(ctx, seller, fmt.Sprint("buyer-", n), receipts) })
	}
	<-ctx.Done()
	buyers.Wait()
	return seller.Close()
}

// buy is one buyer. Of several failures in a row, the buyer keeps the first.
func (s sale) buy(ctx context.Context, seller Seller, buyer string, receipts io.Writer) {
	for answer := ""; answer != refused && ctx.Err() == nil; {
		order, began, before := uuid.Must(uuid.NewV7()).String(), time.Now(), answer
		ok, err := seller.Buy(ctx, Order{ID: order, Buyer: buyer, SKUs: []string{s.SKU}})
		switch {
		case err != nil:
			answer = failed
		case ok:
			answer = sold
		default:
			answer = refused
		}
		if answer != failed || before != failed {
			times := fmt.Sprintf("%d %d", began.UnixNano(), time.Now().UnixNano())
			// One write, and so a whole line, even if the process is killed.
			line := fmt.Sprintf("%s %s %s %.300q\n", answer, order, times, fmt.Sprint(err))
			if _, err := io.WriteString(receipts, line); err != nil {
				return
			}
		}
		if answer == failed {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

func readReceipt(line string) (r receipt, err error) {
	var began, answered int64
	_, err = fmt.Sscanf(line, "%s %s %d %d %q", &r.answer, &r.order, &began, &answered, &r.reason)
	r.began, r.answered = time.Unix(0, began), time.Unix(0, answered)
	return r, err
}

// process is a seller in a process of its own.
type process struct {
	*os.Process
	receipts <-chan receipt // closed when the process has ended
	stdin    io.Closer
	log      *testserver.LogBuffer
}

// start starts a program that calls Sell.
func (s sale) start(ctx context.Context, program []string) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)                            // stop and end reap the process
	cmd := exec.CommandContext(ctx, program[0], program[1:]...) //nolint:gosec // this program itself
	p := &process{log: new(testserver.LogBuffer)}
	cmd.Env, cmd.Stderr = append(os.Environ(), saleVariable+"="+string(text)), p.log
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	receipts := make(chan receipt, 1<<16) // the seller never waits for the parent
	p.Process, p.receipts = cmd.Process, receipts
	go func() {
		defer close(receipts)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			r, err := readReceipt(lines.Text())
			if err != nil {
				_, _ = fmt.Fprintf(p.log, "no receipt: %.200q: %v\n", lines.Text(), err)
				continue
			}
			receipts <- r
		}
		_ = cmd.Wait()
	}()
	return p, nil
}

// end kills the process, as a crash does, and returns the last receipts when the process is gone.
func (p *process) end() (last []receipt, err error) {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, err
	}
	for r := range p.receipts {
		last = append(last, r)
	}
	return last, nil
}

// stop asks the process to end, and returns the last receipts when it has. After the limit it is killed.
func (p *process) stop() (last []receipt, err error) {
	const limit = 30 * time.Second // a writer may be behind
	_ = p.stdin.Close()            // an ended process has closed it
	killer := time.AfterFunc(limit, func() { _ = p.Kill() })
	for r := range p.receipts {
		last = append(last, r)
	}
	if !killer.Stop() {
		err = fmt.Errorf("the seller did not end within %v: %s", limit, p.log)
	}
	return last, err
}
