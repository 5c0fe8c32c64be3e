/**
 * `GET /metrics`: what is known now, as text for Prometheus and what else scrapes (docs/prometheus.md). It is selected and judged
 * as QUERY does, so nothing is measured unless somebody scrapes.
 */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ADMIN_ROLE, type Reader } from '../../../../auth/permissions.ts'
import type { ArgumentList } from '../../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { contentTypes, Exposition } from '../../../../protocol/prometheus/exposition.ts'
import type { ExpositionFormat } from '../../../../protocol/prometheus/samples.ts'
import { type Asker, type Rights, readerOf } from '../../../kernel/accounts/rights.ts'
import type { Network } from '../../../kernel/core/address.ts'
import { isRefusal, type StatusError } from '../../../kernel/core/errors.ts'
import type { FairWork, Party, Steps } from '../../../kernel/core/fair-work.ts'
import type { Instances } from '../../../kernel/metrics/instances.ts'
import { fromForeign } from '../../../kernel/metrics/labels.ts'
import type { MeasuringHub } from '../../../kernel/metrics/measure.ts'
import { type Reading, readAll } from '../../../kernel/metrics/readings.ts'
import type { SessionContext } from '../../../kernel/sessions/context.ts'
import { AllowedSenders } from '../../../kit/by-tenant.ts'
import { endOf } from '../../turns.ts'
import { type AskerOptions, askerByProof } from '../askers.ts'
import { Pace } from '../pace.ts'
import type { TextReader } from './readers.ts'
import { SampleWriter } from './samples.ts'
import type { ScrapedText, ScrapeProgress, ScrapeRefusal, Scrapes } from './scrapes.ts'

const PATH = '/metrics'
/** What a scrape asks for that does not say. */
const DEFAULT_METRICS = ['producer.*']
/** What is shown to those who do not say who they are: figures that name no tenant, identity, channel or source. */
const OPEN_METRICS = ['producer.stats']
const MAX_METRICS = 64
/** The arguments that say how the text is, each with the only thing that it can be; all others are labels. */
const CHOICES: Readonly<Record<string, string>> = { timestamps: 'own', names: 'prefixed' }
/** The text of a scrape is in memory until it is sent. */
const MAX_LENGTH = 128 << 20
/** Characters that are written at once. */
const PIECE_LENGTH = 32 << 10
const TEXTS_PER_STEP = 128
/** Prometheus says how long it waits; these are what is left for the way, and what is assumed of others. */
const [MARGIN_MS, PATIENCE_MS] = [500, 9_500]

/** The parts of the server that select and measure. */
export interface MetricsServices {
  readonly rights: Rights
  readonly instances: Pick<Instances, 'select'>
  readonly hub: MeasuringHub
  readonly scrapes: Scrapes
}

export interface MetricsOptions extends AskerOptions {
  readonly context: SessionContext & MetricsServices
  /** The networks from which the server's own figures may be read without a token. */
  readonly openTo: () => readonly Network[]
}

/** What a refused scrape is answered; it may come again after a second. */
const refusals: Readonly<Record<ScrapeRefusal, readonly [status: number, detail: string]>> = {
  tenant: [429, 'too many scrapes of the tenant wait for their turn'],
  readers: [429, 'too many readers of the tenant wait for their turn'],
  all: [503, 'too many scrapes of all tenants wait for their turn'],
  memory: [503, 'the texts of all tenants take too much memory, most of it those of the tenant'],
}
const RETRY_AFTER_S = '1'

/** A request that cannot be answered with metrics. */
class Unanswerable extends Error {
  readonly status: number

  constructor(status: number, detail: string) {
    super(detail)
    this.status = status
  }
}

/** Must be called after `hardenHttp`. */
export function serveMetrics(app: FastifyInstance, options: MetricsOptions): void {
  const { scrapes, faults } = options.context
  /** What a request is answered in place of its text. What all readers of a text get is reported once, where it is made. */
  const failureOf = (error: unknown): Unanswerable => {
    if (error instanceof Unanswerable) return error
    if (isRefusal(error)) return new Unanswerable(statusOf(error), error.message)
    faults.report(`GET ${PATH}`, error)
    return new Unanswerable(500, 'the server failed; its log says why')
  }
  const answers = new Pace()
  const failures = app.createRateLimit()
  app.get(PATH, async (request, reply) => {
    const before = await failures(request, { increment: false })
    if (!before.isAllowed && before.remaining <= 0) {
      void reply.header('retry-after', String(before.ttlInSeconds))
      return refuse(reply, 429, 'too many requests without a valid token from this address')
    }
    const asker = await askerByProof(request, options)
    if (asker !== undefined && 'refused' in asker) {
      await failures(request)
      return refuse(reply, asker.status, asker.refused)
    }
    const gone = endOf(reply.raw)
    try {
      const scrape = scrapeOf(request, asker, options)
      const scraped = await scrapes.scrape({
        tenant: scrape.reader.tenant,
        key: keyOf(scrape),
        reader: gone,
        make: async (progress) => {
          try {
            return await exposed(scrape, options, progress)
          } catch (error) {
            throw failureOf(error)
          }
        },
      })
      // Hundreds may have waited for the same text.
      await new Promise<void>((begin) => answers.begin(begin))
      let refused: ScrapeRefusal
      if ('refused' in scraped) refused = scraped.refused
      else {
        const { tenant } = scrape.reader
        const reader = scrapes.reader({ tenant, gone, disconnect: () => reply.raw.destroy() })
        const isTurn = await reader.inTurn()
        if (isTurn && !scraped.cut.aborted) return send(reply, scrape, scraped, { reader, work: options.context.work })
        refused = isTurn ? 'memory' : 'readers'
      }
      void reply.header('retry-after', RETRY_AFTER_S)
      return refuse(reply, ...refusals[refused])
    } catch (error) {
      const { status, message } = failureOf(error)
      return refuse(reply, status, message)
    }
  })
}

interface Scrape {
  readonly reader: Reader
  readonly metrics: readonly string[]
  readonly labels: ArgumentList
  readonly format: ExpositionFormat
  readonly hasTimes: boolean
  readonly isPrefixed: boolean
  readonly isGzip: boolean
  readonly deadlineMs: number
}

/** The same for those whose texts are the same to the letter. */
function keyOf({ reader, labels, ...form }: Scrape): string {
  const { userId, tenant, role, scope } = reader
  return JSON.stringify([userId, tenant, role, scope ?? null, labels.map(({ name, value }) => [name, value]), form])
}

/** Throws Unanswerable. */
function scrapeOf(request: FastifyRequest, asker: Asker | undefined, options: MetricsOptions): Scrape {
  const query = new URLSearchParams(/\?(.*)$/s.exec(request.url)?.[1] ?? '')
  const named = query.getAll('metric')
  const labels: ArgumentList[number][] = []
  for (const [name, text] of query) {
    if (name === 'metric') continue
    const known = Object.hasOwn(CHOICES, name) ? CHOICES[name] : undefined
    if (known === undefined) labels.push({ name: fromForeign(name), type: BasicType.STRING, value: text })
    else if (text !== known) throw new Unanswerable(400, `\`${name}\` can be \`${known}\``)
  }
  const [hasTimes, isPrefixed] = [query.has('timestamps'), query.has('names')]
  if (named.length > MAX_METRICS) throw new Unanswerable(400, `at most ${MAX_METRICS} times \`metric\``)
  const isGzip = acceptsGzip(request.headers['accept-encoding'])
  const form = { format: formatOf(request.headers.accept), hasTimes, isPrefixed, isGzip }
  const rest = { labels, ...form, deadlineMs: patienceOf(request) }
  if (asker === undefined) return { ...rest, reader: anybody(request, named, labels, options), metrics: OPEN_METRICS }
  const metrics = named.length === 0 ? DEFAULT_METRICS : named
  const { rights } = options.context
  const uncovered = metrics.find((object) => !rights.isCovered(asker.credential, { command: 'COLLECT', object }))
  if (uncovered !== undefined) {
    throw new Unanswerable(
      403,
      `the token does not cover reading ${uncovered}: it needs the scope "COLLECT ${uncovered}"`,
    )
  }
  return { ...rest, reader: readerOf(asker), metrics }
}

/** Whoever does not say who he is, and asks for the server's own figures from where he may. Throws Unanswerable. */
function anybody(
  request: FastifyRequest,
  named: readonly string[],
  labels: ArgumentList,
  { openTo }: MetricsOptions,
): Reader {
  const asksForMore = labels.length > 0 || named.some((name) => ![...OPEN_METRICS, ...DEFAULT_METRICS].includes(name))
  if (asksForMore || !new AllowedSenders(openTo()).check(request.ip).allowed) {
    throw new Unanswerable(401, 'a token is needed, Authorization: Bearer <token>, or the certificate of a user')
  }
  return { userId: 0, tenant: '', name: '', role: ADMIN_ROLE }
}

/** Collects everything, and makes the text of it. Rejects with Unanswerable or StatusError. */
async function exposed(
  scrape: Scrape,
  { context }: MetricsOptions,
  progress: ScrapeProgress,
): Promise<readonly Uint8Array[]> {
  const { reader, metrics, labels, format, hasTimes, isPrefixed, isGzip, deadlineMs } = scrape
  const { clock, work, instances, hub } = context
  const party = { tenant: reader.tenant }
  const exposition = new Exposition(format, MAX_LENGTH)
  const writer = new SampleWriter({ exposition, hasTimes, isPrefixed, now: clock.microseconds() })
  const heard = new Map<string, number>()
  const take = (reading: Reading): void => {
    writer.add(reading)
    const { hostHeardMs } = reading
    const { host } = reading.labels
    if (hostHeardMs !== undefined && host !== undefined) heard.set(host, Math.max(hostHeardMs, heard.get(host) ?? 0))
  }
  const isOver = (): boolean => {
    progress.grownTo(exposition.bytes)
    return progress.isOver() || exposition.isFull
  }
  for (const metric of metrics) {
    const selection = await work.run(party, instances.select(reader, metric, labels, true))
    await readAll(selection, { hub, clock, work, deadlineMs, isOver }, take)
  }
  if (exposition.isFull) {
    throw new Unanswerable(413, `the text has more than ${MAX_LENGTH} characters: choose fewer metrics with \`metric\``)
  }
  if (progress.isOver()) return []
  await work.run(party, exposition.settle())
  await work.run(party, addOwn(exposition, heard, clock.monotonicMs()))
  const pieces = await work.run(party, inPieces(exposition.text()))
  return isGzip ? compressed(pieces) : pieces
}

/** What the text says of itself: how long ago each host was heard of, and what was left out. */
function* addOwn(exposition: Exposition, heard: ReadonlyMap<string, number>, nowMs: number): Steps<void> {
  if (heard.size > 0) {
    const name = 'cinnabar_last_heard_seconds'
    const help = 'Time since a packet of the host came last.'
    const samples = exposition.samples(name, { type: 'gauge', help, unit: 's' }, name)
    for (const [host, ms] of heard) {
      samples.number([['host', host]], (nowMs - ms) / 1_000)
      yield
    }
  }
  if (exposition.repeated > 0) {
    const name = 'cinnabar_repeated_samples'
    const help = 'Samples that this text leaves out because another one has the same name and labels.'
    exposition.samples(name, { type: 'gauge', help, unit: '' }, name).number([], exposition.repeated)
  }
}

/** Once for all who get it. */
async function compressed(pieces: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
  const gzip = Readable.from(pieces, { objectMode: false }).pipe(createGzip({ chunkSize: PIECE_LENGTH }))
  const short: Uint8Array[] = []
  for await (const piece of gzip) short.push(piece)
  return short
}

function send(
  reply: FastifyReply,
  { reader: { tenant }, format, isGzip }: Scrape,
  { pieces, bytes, cut }: ScrapedText,
  { reader, work }: Pick<WritingOptions, 'reader' | 'work'>,
): FastifyReply {
  const response = reply.raw
  void reply.header('content-type', contentTypes[format]).header('vary', 'Accept, Accept-Encoding')
  void reply.header('content-length', bytes)
  if (isGzip) void reply.header('content-encoding', 'gzip')
  const end = (): void => void response.destroy()
  cut.addEventListener('abort', end)
  response.once('close', () => cut.removeEventListener('abort', end))
  return reply.send(written(pieces, { response, reader, party: { tenant }, work }))
}

interface WritingOptions {
  readonly response: ServerResponse
  readonly reader: TextReader
  readonly party: Party
  readonly work: FairWork
}

/** Pieces as their reader takes them, written in its turns and in the time that all work shares. */
function written(pieces: readonly Uint8Array[], { response, reader, party, work }: WritingOptions): Readable {
  let next = 0
  // biome-ignore lint/correctness/useYield: to write one piece is one step
  function* step(readable: Readable): Steps<void> {
    // If it is not corked, Node hands the piece to the system after the step, together with those of all other readers.
    response.cork()
    readable.push(pieces[next++] ?? null)
    response.uncork()
    reader.wrote()
  }
  const write = async (readable: Readable): Promise<void> => {
    if (await reader.inTurn()) await work.run(party, step(readable))
    else response.destroy()
  }
  return new Readable({
    highWaterMark: 1,
    read() {
      // What is pushed later goes out at once, and so as a part of the step.
      queueMicrotask(() => void write(this))
    },
  })
}

/** The same text in few pieces: to write thousands of short ones takes seconds in which nothing else happens. */
function* inPieces(texts: Iterable<string | undefined>): Steps<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  let piece: string[] = []
  let length = 0
  for (const text of texts) {
    if (text === undefined) yield
    else {
      piece.push(text)
      length += text.length
      if (length >= PIECE_LENGTH) {
        pieces.push(Buffer.from(piece.join('')))
        ;[piece, length] = [[], 0]
        yield
      } else if (piece.length % TEXTS_PER_STEP === 0) yield
    }
  }
  if (length > 0) pieces.push(Buffer.from(piece.join('')))
  return pieces
}

function refuse(reply: FastifyReply, status: number, detail: string): FastifyReply {
  if (status === 401) void reply.header('www-authenticate', 'Bearer')
  return reply.code(status).type('text/plain; charset=utf-8').send(`${detail}\n`)
}

function statusOf({ status }: StatusError): number {
  if (status === 'NO_SUCH_METRIC') return 404
  return status === 'PERMISSION_DENIED' ? 403 : status === 'BUSY' ? 503 : 400
}

/** OpenMetrics where the scraper prefers it, as Prometheus does; else Prometheus' own format, which browsers show. */
function formatOf(accept = ''): ExpositionFormat {
  let best: { readonly format: ExpositionFormat; readonly q: number } = { format: 'prometheus', q: 0 }
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const q = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1)
    const version = parameters.find((parameter) => parameter.startsWith('version='))?.slice(8)
    const isOpen = type === 'application/openmetrics-text' && (version === undefined || version === '1.0.0')
    const isText = type === 'text/plain' || type === 'text/*' || type === '*/*'
    if ((isOpen || isText) && q > best.q) best = { format: isOpen ? 'openmetrics' : 'prometheus', q }
  }
  return best.format
}

export function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? '')
    .split(',')
    .some((coding) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*$)[\d.]+\s*)?$/i.test(coding))
}

function patienceOf({ headers }: FastifyRequest): number {
  const seconds = Number(headers['x-prometheus-scrape-timeout-seconds'])
  return seconds > 0 && seconds <= 3_600 ? Math.max(MARGIN_MS, seconds * 1_000 - MARGIN_MS) : PATIENCE_MS
}
