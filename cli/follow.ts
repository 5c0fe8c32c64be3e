/** Prints what arrives on a channel until Ctrl-C, a number of values, or the end of the connection for good. */
import { type Command, InvalidArgumentError } from 'commander'
import { type Consumer, type Gap, GapReason, type Sample } from '../client/index.ts'
import { type Assignments, toTypedArguments } from './assignments.ts'
import { metricParameters } from './catalogue.ts'
import { toJson, toLine } from './output/measured.ts'
import { formatTime, printable } from './output/text.ts'
import { whileWaiting } from './progress.ts'
import type { Terminal } from './terminal.ts'

export interface FollowOptions {
  readonly json?: boolean
  readonly count?: number
}

export function withFollowOptions(command: Command): Command {
  return command
    .option('--count <n>', 'end after so many values', positive)
    .option('--json', 'one JSON object per line, also for losses; times in microseconds since 1970')
}

/** Asks for each metric, with the arguments for all of them. */
export async function bind(
  terminal: Terminal,
  consumer: Consumer,
  { names, assignments }: { readonly names: readonly string[]; readonly assignments: Assignments },
): Promise<void> {
  for (const metric of names) {
    const binding = toTypedArguments(assignments, () => metricParameters(consumer, metric)).then((args) =>
      consumer.follow(metric, args),
    )
    await whileWaiting(terminal, `asking for ${metric}`, binding)
  }
}

/** A value is handled when the system has taken what was printed of it. */
export async function follow(terminal: Terminal, consumer: Consumer, options: FollowOptions): Promise<void> {
  const undoInterrupt = terminal.onInterrupt(() => void consumer.close())
  const { json = false, count = Number.POSITIVE_INFINITY } = options
  const nameOf = (id: number) => consumer.nameOf(id) || `#${id}`
  const undoGap = consumer.on('gap', (gap) => {
    terminal.note(describeGap(gap, nameOf))
    // A program reads only this; where it stands the values are missing. Whether somebody reads, the next value tells.
    if (json) terminal.print(gapJson(gap, nameOf)).catch(() => {})
  })
  let values = 0
  try {
    for await (const sample of consumer) {
      const name = sample.name || nameOf(sample.metric)
      await terminal.print(json ? jsonLines(name, sample) : toLine(name, sample, terminal.colors))
      if (++values < count) continue
      if (sample.transaction !== 0) await consumer.commit(sample.transaction)
      break
    }
  } finally {
    undoGap()
    undoInterrupt()
  }
}

function jsonLines(name: string, sample: Sample): string {
  const committed = sample.transaction === 0 ? {} : { transaction: sample.transaction }
  return toJson(name, sample)
    .map((object) => JSON.stringify({ ...object, ...committed }))
    .join('\n')
}

const reasons = new Map<number, string>(Object.entries(GapReason).map(([name, code]) => [code, name]))

export function describeGap({ count, metric, reason, from, to }: Gap, nameOf: (id: number) => string): string {
  const what = count === 0 ? 'values, how many is not known' : `${count} ${count === 1 ? 'value' : 'values'}`
  const where = metric === 0 ? '' : ` of ${printable(nameOf(metric))}`
  const when = from === 0 ? '' : ` from ${formatTime(from)} to ${formatTime(to)}`
  return `lost ${what}${where} (${reasons.get(reason) ?? `reason ${reason}`})${when}`
}

function gapJson({ count, metric, reason, from, to }: Gap, nameOf: (id: number) => string): string {
  const of = metric === 0 ? {} : { metric: nameOf(metric) }
  return JSON.stringify({ lost: count, reason: reasons.get(reason) ?? reason, ...of, from, to })
}

function positive(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It has to be a whole number above 0.')
}
