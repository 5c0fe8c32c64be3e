/** `cinnabar audit`: prints what was done, by whom and from where. Reading leaves no record. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { type ClientClock, type ClientTimer, realClock } from '../../client/clock.ts'
import { BasicType, type Consumer, StatusError, valueToJson } from '../../client/index.ts'
import { positiveNumber, sinceOf, wholeNumber } from '../arguments.ts'
import { readConfiguration } from '../configuration.ts'
import { ExitCode, Failure, orStorageFailure } from '../failure.ts'
import { describeGap, formatTime, jsonText } from '../format.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { wrapped } from '../width.ts'

interface AuditOptions extends JsonOptions {
  readonly last?: number
  readonly after?: number
  /** Microseconds since 1970. */
  readonly since?: number
  readonly actor?: string
  readonly action?: string
  readonly follow?: boolean
}

const METRIC = 'producer.audit'
/** What is printed if nothing else is asked for. */
const LAST = 20
/** Ends a reading for which no more records arrive: only admins see the number of the last one, and it may be lost. */
const IDLE_MS = 5_000
/** How long the channel exists after this process was killed. */
const EXPIRE_MS = 60_000
const WIDTHS = { number: 7, time: 19, action: 8, outcome: 9, actor: 12, address: 12 } as const
/** On a narrower terminal, what was done is on a line of its own. */
const WIDE = 120

export function addAudit(program: Command, cli: Cli, clock: ClientClock = realClock(), wallMs = Date.now): void {
  const audit = withLoginOptions(
    program
      .command('audit')
      .description('print the newest records of the audit log')
      .option('--last <n>', `how many (default: ${LAST}; all, if another option selects some)`, positiveNumber)
      .option('--since <when>', 'only records that are not older: 2h, 7d, or a time such as 2026-11-22T08:00', (text) =>
        sinceOf(text, wallMs()),
      )
      .option('--actor <user>', 'only what this user or tenant/user did; --user is who reads the log')
      .option('--action <action>', 'only these: execute, outcome, refused, auth, dial, ...')
      .option(
        '--after <number>',
        'only records above this number',
        wholeNumber(0, 999_999_999_999_999, 'the number of a record'),
      )
      .option('--follow', 'continue with new records until Ctrl-C; without another option, print only those')
      .option(...JSON_OPTION),
  )
    .enablePositionalOptions()
    .helpCommand(false)
    .action((options: AuditOptions) => read(cli, clock, options))
  addAuditVerify(audit, cli)
}
/** Configures the channel to end early rather than have gaps. Resolves with false if the user may not. */
async function configureChannel(consumer: Consumer): Promise<boolean> {
  try {
    const { channel } = consumer
    await consumer.execute('channel.configure', { channel, overflow: 'drop-newest', expire_ms: EXPIRE_MS })
    return true
  } catch (error) {
    if (error instanceof StatusError) return false
    throw error
  }
}

async function read(cli: Cli, clock: ClientClock, options: AuditOptions): Promise<void> {
  const { terminal } = cli
  let isOver = false
  // The notice that the channel was deleted at the end is of no interest.
  const quiet = {
    ...cli,
    terminal: { ...terminal, note: (text: string) => (isOver ? undefined : terminal.note(text)) },
  }
  await withConsumer(quiet, options, async (consumer) => {
    const isConfigured = await configureChannel(consumer)
    await print(terminal, consumer, clock, options)
    isOver = true
    if (isConfigured) await consumer.delChannel().catch(() => {})
  })
}

/** The number of the newest record; undefined if the user does not see it. */
async function newestRecord(consumer: Consumer): Promise<number | undefined> {
  try {
    const { value } = await consumer.query('producer.stats')
    const stats = fieldsOf(value)
    return findField(stats, 'audit_records') && fieldNumber(stats, 'audit_records')
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

interface Selection {
  /** Records above this number are read; undefined: new ones. */
  readonly after: number | undefined
  /** How many of those that were found are printed at the end of the reading. */
  readonly last: number
}

function selectionOf(options: AuditOptions, newest: number | undefined): Selection {
  const { last, after, since, actor, action, follow = false } = options
  const isFiltered = since !== undefined || actor !== undefined || action !== undefined
  if (follow && last === undefined && after === undefined && since === undefined) {
    return { after: undefined, last: Number.POSITIVE_INFINITY }
  }
  const wanted = last ?? (isFiltered || after !== undefined ? Number.POSITIVE_INFINITY : LAST)
  // Numbers are without a hole, so that the last records are found without the others.
  const first = isFiltered || newest === undefined ? 0 : Math.max(0, newest - wanted)
  return { after: Math.max(after ?? 0, first), last: wanted }
}

async function print(terminal: Terminal, consumer: Consumer, clock: ClientClock, options: AuditOptions): Promise<void> {
  const { since = 0, actor, action, follow: isFollowed = false } = options
  const newest = await newestRecord(consumer)
  const { after, last } = selectionOf(options, newest)
  const printer = new Printer(terminal, options.json ?? false)
  if (!isFollowed && newest !== undefined && newest <= (after ?? 0)) return printer.end(after ?? 0)
  // The consumer stays open, because its channel is still to be deleted.
  let stop = () => {}
  const stopped = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined)
  })
  const undoInterrupt = terminal.onInterrupt(stop)
  const undoGap = consumer.on('gap', (gap) => terminal.note(describeGap(gap, () => METRIC)))
  let isIdle = false
  const awaitNext = () => {
    if (isFollowed) return undefined
    return clock.setTimeout(() => {
      isIdle = true
      stop()
    }, IDLE_MS)
  }
  const samples = consumer[Symbol.asyncIterator]()
  const kept: AnswerRecord[] = []
  let timer: ClientTimer | undefined
  let isPast = newest !== undefined && newest > (after ?? newest)
  try {
    await consumer.follow(METRIC, after === undefined ? {} : { after })
    timer = awaitNext()
    for (;;) {
      const next = samples.next()
      next.catch(() => {})
      const sample = (await Promise.race([next, stopped]))?.value
      if (!sample) break
      if (sample.value.type !== BasicType.REC) continue
      const record: AnswerRecord = sample.value.value
      timer?.cancel()
      const isMatch =
        fieldNumber(record, 'time') >= since &&
        (actor === undefined || fieldText(record, 'actor') === actor) &&
        (action === undefined || fieldText(record, 'action') === action)
      if (isMatch && Number.isFinite(last) && (isPast || !isFollowed)) {
        kept.push(record)
        if (kept.length > last) kept.shift()
      } else if (isMatch) await printer.print(record)
      if (newest !== undefined && fieldNumber(record, 'number') >= newest) {
        isPast = false
        for (const one of kept.splice(0)) await printer.print(one)
        if (!isFollowed) break
      }
      timer = awaitNext()
    }
    for (const one of kept) await printer.print(one)
  } finally {
    timer?.cancel()
    void samples.return?.()
    undoGap()
    undoInterrupt()
  }
  if (isIdle && newest !== undefined) {
    throw new Failure(ExitCode.FAILED, `the newest record, ${newest}, has not arrived: see the log of the server`)
  }
  if (!isFollowed) printer.end(after ?? 0)
}

class Printer {
  readonly #terminal: Terminal
  readonly #isJson: boolean
  #records = 0

  constructor(terminal: Terminal, isJson: boolean) {
    this.#terminal = terminal
    this.#isJson = isJson
  }

  async print(record: AnswerRecord): Promise<void> {
    const { print, colors, screen } = this.#terminal
    const columns = screen?.size().columns
    if (this.#records++ === 0 && !this.#isJson) await print(colors.bold(joined(HEADS, columns)))
    await print(this.#isJson ? toJsonLine(record) : joined(cellsOf(record), columns))
  }

  /** Says that nothing was printed. */
  end(after: number): void {
    if (this.#records === 0) this.#terminal.note(`no record${after === 0 ? '' : ` above ${after}`} matches`)
  }
}

/** The hash is hexadecimal, as `cinnabar audit verify` prints it and takes it. */
function toJsonLine(record: AnswerRecord): string {
  const json = valueToJson({ type: BasicType.REC, value: record }) as object
  const hash = findField(record, 'hash')
  return jsonText(hash === undefined ? json : { ...json, hash: fieldText(record, 'hash') })
}

const HEADS = ['NUMBER', 'TIME', 'ACTION', 'OUTCOME', 'ACTOR', 'ADDRESS', 'WHAT']

function cellsOf(record: AnswerRecord): string[] {
  const text = (name: string) => fieldText(record, name)
  const args = text('args') === '{}' ? '' : text('args')
  const what = [text('object'), args, text('detail')].filter((part) => part !== '').join('  ')
  const time = formatTime(fieldNumber(record, 'time')).slice(0, WIDTHS.time)
  const number = String(fieldNumber(record, 'number'))
  return [number, time, text('action'), text('outcome'), text('actor') || '-', text('address') || '-', what]
}

/** One line, or on a narrow terminal several. */
function joined(cells: readonly string[], columns = Number.POSITIVE_INFINITY): string {
  if (columns >= WIDE) return aligned(cells)
  const indent = WIDTHS.number + 2
  const what = wrapped(cells.at(-1)!, columns - indent)
  return [aligned(cells.slice(0, -1)), ...what.map((line) => ' '.repeat(indent) + line)].join('\n')
}

/** Uses the usual widths of the columns, because later records are not known yet. */
function aligned([number = '', ...cells]: readonly string[]): string {
  const [first, ...widths] = Object.values(WIDTHS)
  return [number.padStart(first!), ...cells.map((cell, i) => cell.padEnd(widths[i] ?? 0))].join('  ').trimEnd()
}

interface VerifyOptions {
  readonly config?: string
  readonly database?: string
  readonly from?: { readonly number: number; readonly hash: string }
  readonly json?: boolean
}

/** The name of the file in the data directory. */
const DATABASE = 'cinnabar.db'

const AFTER_HELP = `
A server may be running on the database. Anyone who can write to the database could recompute all hashes: store the last line
of the output elsewhere, and pass it as --from the next time.`

/** `cinnabar audit verify`: reads the audit log directly from the database and checks its chain of hashes. */
function addAuditVerify(audit: Command, { terminal }: Cli): void {
  audit
    .command('verify')
    .description('check in the database that no record was changed, removed or inserted; exits with 1 if one was')
    .option('--config <file>', "the server's configuration, which says where the database is (CINNABAR_CONFIG)")
    .option('--database <file>', 'the database or a copy of it')
    .option('--from <number:hash>', 'record from an earlier check, which must be unchanged', hashedRecord)
    .option('--json', 'print one JSON object')
    .addHelpText('after', AFTER_HELP)
    .action(async ({ config, database, from, json = false }: VerifyOptions) => {
      const file = database ?? join((await readConfiguration(config, terminal.env)).producer.dataDir, DATABASE)
      if (!existsSync(file)) {
        const advice = database === undefined ? '; give the file with --database, or the --config of the server' : ''
        throw new Failure(ExitCode.USAGE, `there is no database ${file}${advice}`)
      }
      const { verifyAudit } = await import('#server/server')
      const finding = orStorageFailure(() => verifyAudit(file, from))
      if (json) await terminal.print(jsonText(finding))
      if (!finding.whole) {
        const intact =
          finding.records === 1
            ? 'the one record before it is intact'
            : `the ${finding.records} records before it are intact`
        const message = `the audit log is not intact at record ${finding.at}: ${finding.problem}\n${intact}`
        throw new Failure(ExitCode.FAILED, message)
      }
      if (json) return
      const { records, first, last, hash } = finding
      if (records === 0) return terminal.print('the audit log is empty')
      await terminal.print(`${records} records, ${first} to ${last}: all intact\n${last}:${hash}`)
    })
}

function hashedRecord(text: string): { number: number; hash: string } {
  const [, number, hash] = /^([1-9]\d{0,14}):([0-9a-fA-F]{64})$/.exec(text) ?? []
  if (number !== undefined && hash !== undefined) return { number: Number(number), hash: hash.toLowerCase() }
  throw new InvalidArgumentError('Expected NUMBER:HASH as printed by `cinnabar audit verify`.')
}
