/**
 * `cinnabar audit`: what was done, by whom and from where. A call is itself in the log, by the control that sets its channel
 * up: that record is the newest from before the reading began, and where the reading ends.
 */
import { type Command, InvalidArgumentError } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import { BasicType, type Consumer, StatusError } from '../../client/index.ts'
import { describeGap } from '../follow.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION } from '../output/listing.ts'
import { jsonOf } from '../output/measured.ts'
import { formatTime } from '../output/text.ts'
import { numberOf, type Record, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { addAuditVerify } from './audit-verify.ts'

interface AuditOptions extends LoginOptions {
  readonly after?: number
  readonly follow?: boolean
  readonly json?: boolean
}

const METRIC = 'producer.audit'
/** Whoever asks for what is above the newest, or whose token allows no control, does not see where it ends. */
const IDLE_MS = 5_000
/** So long the channel is kept where this call is killed. */
const EXPIRE_MS = 60_000
const WIDTHS = { number: 8, time: 23, action: 8, outcome: 17, actor: 16, address: 15 } as const

export function addAudit(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  const audit = withLoginOptions(program.command('audit'))
    .description('print the records of the audit log, up to the newest')
    .option('--after <number>', 'only those above this number', recordNumber)
    .option('--follow', 'go on with what comes, until Ctrl-C; without --after only with that')
    .option(...JSON_OPTION)
    .enablePositionalOptions()
    .helpCommand(false)
    .action((options: AuditOptions) => read(cli, clock, options))
  addAuditVerify(audit, cli)
}

/** A channel that rather ends early than has holes. False where this identity may not. */
async function setUp(consumer: Consumer): Promise<boolean> {
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
  // That its channel is deleted then is nobody's news.
  const quiet = {
    ...cli,
    terminal: { ...terminal, note: (text: string) => (isOver ? undefined : terminal.note(text)) },
  }
  await withConsumer(quiet, options, async (consumer) => {
    const isMarked = await setUp(consumer)
    await print(terminal, consumer, clock, options)
    isOver = true
    if (isMarked) await consumer.delChannel().catch(() => {})
  })
}

async function print(terminal: Terminal, consumer: Consumer, clock: ClientClock, options: AuditOptions): Promise<void> {
  const { after, follow: isFollowed = false, json: isJson = false } = options
  // Not by closing the consumer: its channel is still to be deleted.
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
      const coming = samples.next()
      coming.catch(() => {})
      const sample = (await Promise.race([coming, stopped]))?.value
      if (!sample) break
      if (sample.value.type !== BasicType.REC) continue
      const record: Record = sample.value.value
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

/** Whether this call has made it. */
function isOwn(record: Record, channel: number): boolean {
  if (textOf(record, 'object') !== 'channel.configure') return false
  try {
    const args: unknown = JSON.parse(textOf(record, 'args'))
    return typeof args === 'object' && args !== null && 'channel' in args && Number(args.channel) === channel
  } catch {
    return false
  }
}

const HEAD = aligned(
  ['number', 'time', 'action', 'outcome', 'actor', 'address', 'what'].map((head) => head.toUpperCase()),
)

function toLine(record: Record): string {
  const text = (name: string) => textOf(record, name)
  const args = text('args') === '{}' ? '' : text('args')
  const what = [text('object'), args, text('detail')].filter((part) => part !== '').join('  ')
  const cells = [text('action'), text('outcome'), text('actor') || '-', text('address') || '-', what]
  return aligned([String(numberOf(record, 'number')), formatTime(numberOf(record, 'time')), ...cells])
}

/** In columns that are as wide as their texts mostly are: what is to come is not known. */
function aligned([number = '', ...cells]: readonly string[]): string {
  const [first, ...widths] = Object.values(WIDTHS)
  return [number.padStart(first!), ...cells.map((cell, i) => cell.padEnd(widths[i] ?? 0))].join('  ').trimEnd()
}

function recordNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It has to be the number of a record.')
}
