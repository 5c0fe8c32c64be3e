/**
 * `cinnabar audit`: prints what was done, by whom and from where. The command itself appears in the log because it configures
 * its channel by a control: that record is the newest one from before the reading began, and the reading ends there.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import { BasicType, type Consumer, StatusError } from '../../client/index.ts'
import { wholeNumber } from '../arguments.ts'
import { readConfiguration } from '../configuration.ts'
import { ExitCode, Failure } from '../failure.ts'
import { describeGap, formatTime } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, jsonOf } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldText } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'

interface AuditOptions extends LoginOptions {
  readonly after?: number
  readonly follow?: boolean
  readonly json?: boolean
}

const METRIC = 'producer.audit'
/** Ends the reading if its own record does not appear: above the newest record, or if no control is allowed. */
const IDLE_MS = 5_000
/** How long the channel exists after this process was killed. */
const EXPIRE_MS = 60_000
const WIDTHS = { number: 8, time: 23, action: 8, outcome: 17, actor: 16, address: 15 } as const

export function addAudit(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  const audit = withLoginOptions(program.command('audit'))
    .description('print the records of the audit log up to the newest')
    .option(
      '--after <number>',
      'print only records above this number',
      wholeNumber(0, 999_999_999_999_999, 'the number of a record'),
    )
    .option('--follow', 'continue with new records until Ctrl-C; without --after, print only those')
    .option(...JSON_OPTION)
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
    const isMarked = await configureChannel(consumer)
    await print(terminal, consumer, clock, options)
    isOver = true
    if (isMarked) await consumer.delChannel().catch(() => {})
  })
}

async function print(terminal: Terminal, consumer: Consumer, clock: ClientClock, options: AuditOptions): Promise<void> {
  const { after, follow: isFollowed = false, json: isJson = false } = options
  // The consumer stays open, because its channel is still to be deleted.
  let stop = () => {}
  const stopped = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined)
  })
  const undoInterrupt = terminal.onInterrupt(stop)
  const undoGap = consumer.on('gap', (gap) => terminal.note(describeGap(gap, () => METRIC)))
  const idle = () => (isFollowed ? undefined : clock.setTimeout(stop, IDLE_MS))
  const samples = consumer[Symbol.asyncIterator]()
  let records = 0
  let timer = idle()
  try {
    await consumer.follow(METRIC, isFollowed && after === undefined ? {} : { after: after ?? 0 })
    for (;;) {
      const next = samples.next()
      next.catch(() => {})
      const sample = (await Promise.race([next, stopped]))?.value
      if (!sample) break
      if (sample.value.type !== BasicType.REC) continue
      const record: AnswerRecord = sample.value.value
      timer?.cancel()
      if (records++ === 0 && !isJson) await terminal.print(terminal.colors.bold(HEAD))
      await terminal.print(isJson ? jsonOf(record) : toLine(record))
      if (!isFollowed && isOwn(record, consumer.channel)) break
      timer = idle()
    }
  } finally {
    timer?.cancel()
    void samples.return?.()
    undoGap()
    undoInterrupt()
  }
  if (records === 0 && !isFollowed) terminal.note(`there is no record above ${after ?? 0}`)
}

/** Whether this command has caused the record. */
function isOwn(record: AnswerRecord, channel: number): boolean {
  if (fieldText(record, 'object') !== 'channel.configure') return false
  try {
    const args: unknown = JSON.parse(fieldText(record, 'args'))
    return typeof args === 'object' && args !== null && 'channel' in args && Number(args.channel) === channel
  } catch {
    return false
  }
}

const HEAD = aligned(
  ['number', 'time', 'action', 'outcome', 'actor', 'address', 'what'].map((head) => head.toUpperCase()),
)

function toLine(record: AnswerRecord): string {
  const text = (name: string) => fieldText(record, name)
  const args = text('args') === '{}' ? '' : text('args')
  const what = [text('object'), args, text('detail')].filter((part) => part !== '').join('  ')
  const cells = [text('action'), text('outcome'), text('actor') || '-', text('address') || '-', what]
  return aligned([String(fieldNumber(record, 'number')), formatTime(fieldNumber(record, 'time')), ...cells])
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
      const { verifyAudit } = await import('../../server/start/server.ts')
      const finding = orFailure(() => verifyAudit(file, from))
      if (json) await terminal.print(JSON.stringify(finding))
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

/** Reports an error of the storage in its own words. */
function orFailure<T>(verify: () => T): T {
  try {
    return verify()
  } catch (error) {
    if (error instanceof Error && error.name === 'StorageError') {
      throw new Failure(ExitCode.FAILED, error.message, { cause: error })
    }
    throw error
  }
}

function hashedRecord(text: string): { number: number; hash: string } {
  const [, number, hash] = /^([1-9]\d{0,14}):([0-9a-fA-F]{64})$/.exec(text) ?? []
  if (number !== undefined && hash !== undefined) return { number: Number(number), hash: hash.toLowerCase() }
  throw new InvalidArgumentError('Expected NUMBER:HASH as printed by `cinnabar audit verify`.')
}
