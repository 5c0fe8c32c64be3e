/**
 * `cinnabar history replay`: a range of the history is sent again, at its old times, by remote write. It goes on from slice to slice of
 * time, so that a receiver gets samples nearly in the order of their times, and so that a replay that was cut off is begun again from
 * the slice that it says.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { ConnectOptions, Consumer, SeriesHistory } from '../../client/index.ts'
import { parseAssignments, sinceOf } from '../arguments.ts'
import { counted } from '../confirm.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatCount, jsonText, printable } from '../format.ts'
import { checkSecret, type HttpAnswer, httpUrl, postBytes } from '../http.ts'
import { type LoginOptions, readSecret } from '../login.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { checkRange, LABELS_HELP, nothingFound, OneTenant } from './history-export.ts'
import { watched } from './history-import.ts'

const TIME_HELP = 'how long ago, such as 2h or 7d, or a time such as 2026-11-22T08:00'
/** Prometheus takes nothing that is an hour older than the newest that it has, unless it is told to. */
const SLICE_US = 600_000_000
/** As many as Prometheus itself sends in a request. */
const SAMPLES_OF_REQUEST = 2_000
const MOST_ATTEMPTS = 10
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000
const MAX_SHOWN = 500

const AFTER_REPLAY = `
Samples go with their names, labels and times to a URL that takes remote write 1.0, such as https://monitor.example:7653/api/v1/write of
another Cinnabar, or http://127.0.0.1:9090/api/v1/write of a Prometheus that has --web.enable-remote-write-receiver. Samples that the
receiver has already are sent again without harm. Prometheus refuses those that are older than its newest ones by an hour or more,
unless \`out_of_order_time_window\` allows them: they are counted, and the exit code is 1.`

interface ReplayOptions extends LoginOptions, JsonOptions {
  readonly since: number
  readonly until?: number
  readonly to: string
  readonly tenant?: string
  readonly toTokenFile?: string
  readonly toUser?: string
  readonly toPasswordFile?: string
  readonly toCa?: string
}

interface Receiver {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly tls: ConnectOptions['tls'] | undefined
}

type Wait = (ms: number) => Promise<unknown>

export function addHistoryReplay(
  history: Command,
  cli: Cli,
  wallMs: () => number = Date.now,
  wait: Wait = (ms) => pause(ms),
): void {
  const { terminal } = cli
  const time = (text: string): number => Math.floor(sinceOf(text, wallMs()))
  withLoginOptions(history.command('replay'))
    .description('send what is remembered of metrics to another server, at its old times')
    .argument('<metric>', "a metric, here or in Prometheus, or several with *: 'gmetric.*'")
    .argument('[name=value...]', LABELS_HELP)
    .requiredOption('--since <time>', `the first sample: ${TIME_HELP}`, time)
    .option('--until <time>', `the last sample: ${TIME_HELP} (default: now)`, time)
    .requiredOption('--to <url>', 'where remote write is taken: http:// or https://, with the path')
    .option('--to-token-file <file>', 'file whose first line is the token that is shown there')
    .option('--to-user <name>', 'the user there, with --to-password-file')
    .option('--to-password-file <file>', 'file whose first line is the password of that user')
    .option('--to-ca <file>', 'authorities for the certificate there (default: those of Node)')
    .option('--tenant <tenant>', 'only the series of this tenant; an admin has to say which, if there are several')
    .option(...JSON_OPTION)
    .addHelpText('after', AFTER_REPLAY)
    .action(async (metric: string, words: string[], options: ReplayOptions) => {
      checkRange(options)
      const labels = Object.fromEntries(parseAssignments(words))
      const receiver = await receiverOf(options, terminal)
      await withConsumer(cli, options, async (consumer) => {
        const replay = new Replay(terminal, receiver, wait)
        await replay.run(consumer, { metric, labels, until: wallMs() * 1_000, ...options })
        const { sent, refused } = replay
        if (sent + refused === 0) throw nothingFound(metric, options)
        const said = `${counted(sent, 'sample')} ${sent === 1 ? 'is' : 'are'} sent to ${receiver.url}`
        await terminal.print(options.json ? jsonText({ sent, refused }) : said)
        if (refused === 0) return
        const [count, were] = [counted(refused, 'sample'), refused === 1 ? 'was' : 'were']
        throw new Failure(ExitCode.FAILED, `${count} ${were} refused there: ${replay.firstRefusal}`)
      })
    })
}

interface ReplayRange extends Pick<ReplayOptions, 'since' | 'tenant'> {
  readonly metric: string
  readonly labels: Readonly<Record<string, string>>
  readonly until: number
}

interface Outgoing {
  readonly name: string
  readonly labels: readonly (readonly [name: string, text: string])[]
  readonly samples: readonly { readonly value: number | undefined; readonly timeMs: number }[]
}

class Replay {
  sent = 0
  refused = 0
  firstRefusal = ''
  readonly #terminal: Terminal
  readonly #receiver: Receiver
  readonly #wait: Wait
  readonly #abort = new AbortController()
  readonly #one = new OneTenant()
  #batch: Outgoing[] = []
  #count = 0

  constructor(terminal: Terminal, receiver: Receiver, wait: Wait) {
    this.#terminal = terminal
    this.#receiver = receiver
    this.#wait = wait
  }

  async run(consumer: Consumer, { metric, labels, since, until, tenant }: ReplayRange): Promise<void> {
    const progress = watched(this.#terminal)
    const undo = this.#terminal.onInterrupt(() => this.#abort.abort())
    let from = since
    try {
      for (; from <= until; from += SLICE_US) {
        const to = Math.min(until, from + SLICE_US - 1)
        for await (const piece of consumer.history(metric, { labels, since: from, until: to, inPieces: true })) {
          if (tenant !== undefined && piece.tenant !== tenant) continue
          if (tenant === undefined) this.#one.check(piece)
          for (const series of outgoing(piece)) await this.#add(series)
        }
        await this.#send()
        progress.say(`${formatCount(this.sent)} samples; up to ${new Date(to / 1_000).toISOString()}`)
      }
    } catch (error) {
      const again = `What stands before is sent. To go on: --since ${new Date(from / 1_000).toISOString()}`
      if (!(error instanceof Failure)) throw error
      throw new Failure(error.exitCode, `${error.message}\n${again}`, { cause: error })
    } finally {
      undo()
      progress.end()
    }
  }

  async #add(series: Outgoing): Promise<void> {
    this.#batch.push(series)
    this.#count += series.samples.length
    if (this.#count >= SAMPLES_OF_REQUEST) await this.#send()
  }

  async #send(): Promise<void> {
    const [batch, count] = [this.#batch, this.#count]
    if (count === 0) return
    this.#batch = []
    this.#count = 0
    const { writeRequestOf } = await import('../../server/wings/drains/prometheus.ts')
    const { body, headers } = writeRequestOf(batch)
    const { status, body: said } = await this.#post(body, headers)
    if (status >= 200 && status < 300) {
      this.sent += count
      return
    }
    // The others of a request may have been taken: how many, not every receiver says.
    if (status !== 400) throw refusal(status, said)
    this.refused += count
    this.firstRefusal ||= shown(said)
  }

  /** Again and again, with longer and longer pauses, while the receiver is away or overloaded. */
  async #post(body: Uint8Array, headers: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const { url, headers: own, tls } = this.#receiver
    const request = { url, headers: { ...headers, ...own }, body, tls, advice: ADVICE }
    for (let attempt = 1; ; attempt++) {
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1))
      try {
        const answer = await postBytes(request, this.#abort.signal)
        const isPassing = answer.status === 429 || answer.status >= 500
        if (!isPassing || attempt === MOST_ATTEMPTS) return answer
        await this.#wait(Math.max(pauseMs, Math.min(LONGEST_PAUSE_MS, 1_000 * (answer.retryAfterS ?? 0))))
      } catch (error) {
        if (this.#abort.signal.aborted) throw new Failure(ExitCode.FAILED, 'interrupted')
        if (attempt === MOST_ATTEMPTS) throw error
        await this.#wait(pauseMs)
      }
      if (this.#abort.signal.aborted) throw new Failure(ExitCode.FAILED, 'interrupted')
    }
  }
}

const ADVICE = {
  address: 'The address is that of --to',
  trust: 'The authorities are those of --to-ca FILE; no secret was sent',
}

function refusal(status: number, said: string): Failure {
  const advice =
    status === 401 || status === 403
      ? '\nSee --to-token-file, or --to-user and --to-password-file; a Cinnabar needs PUBLISH of prometheus.* there'
      : status === 404
        ? '\nThe path has to be in --to, such as /api/v1/write; a Prometheus needs --web.enable-remote-write-receiver'
        : ''
  return new Failure(ExitCode.FAILED, `the receiver has answered ${status}: ${shown(said)}${advice}`)
}

function shown(said: string): string {
  return printable(said.trim().slice(0, MAX_SHOWN)) || 'without a reason'
}

/** A piece of a series in parts of as many samples as a request has. Its ends are stale markers. */
function* outgoing({ name, labels, times, values, ended }: SeriesHistory): Generator<Outgoing> {
  const samples = [
    ...times.map((time, at) => ({ value: values[at], timeMs: Math.round(time / 1_000) })),
    ...ended.map((time) => ({ value: undefined, timeMs: Math.round(time / 1_000) })),
  ].sort((one, other) => one.timeMs - other.timeMs)
  for (let from = 0; from < samples.length; from += SAMPLES_OF_REQUEST) {
    yield { name, labels: Object.entries(labels), samples: samples.slice(from, from + SAMPLES_OF_REQUEST) }
  }
}

/** Rejects with Failure. */
async function receiverOf(options: ReplayOptions, terminal: Terminal): Promise<Receiver> {
  const { to, toTokenFile, toUser, toPasswordFile, toCa: ca } = options
  const url = httpUrl(to, '--to must be like https://monitor.example:7653/api/v1/write')
  const tls = ca === undefined ? undefined : { ca }
  if (toTokenFile !== undefined && toUser !== undefined)
    throw new Failure(ExitCode.USAGE, 'give either --to-token-file, or --to-user and --to-password-file')
  if ((toUser === undefined) !== (toPasswordFile === undefined))
    throw new Failure(ExitCode.USAGE, '--to-user and --to-password-file belong together')
  if (toTokenFile !== undefined) {
    checkSecret(url, 'a token')
    return { url, tls, headers: { authorization: `Bearer ${(await readSecret(toTokenFile, terminal)).trim()}` } }
  }
  if (toUser === undefined || toPasswordFile === undefined) return { url, tls, headers: {} }
  checkSecret(url, 'a password')
  const pair = Buffer.from(`${toUser}:${await readSecret(toPasswordFile, terminal)}`).toString('base64')
  return { url, tls, headers: { authorization: `Basic ${pair}` } }
}
