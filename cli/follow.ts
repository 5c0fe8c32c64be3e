/** Prints what arrives on a channel until Ctrl-C, a number of values, or the end of the connection. */
import { type Command, InvalidArgumentError } from 'commander'
import { type Entries, type Entry, type Gap, GapReason, type ValueMessage } from '../client/index.ts'
import { toJson, toLine } from './output/measured.ts'
import { formatTime, printable } from './output/text.ts'
import type { Terminal } from './terminal.ts'

export interface FollowOptions {
  readonly json?: boolean
  readonly count?: number
}

export interface Followed {
  readonly terminal: Terminal
  readonly entries: Entries
  /** The metrics behind the ids. */
  readonly names: ReadonlyMap<number, string>
  readonly options: FollowOptions
  /** The system has taken what was printed for this entry. */
  readonly printed?: (entry: Entry) => void
}

export function withFollowOptions(command: Command): Command {
  return command
    .option('--count <n>', 'end after so many values', positive)
    .option('--json', 'one JSON object per line; times in microseconds since 1970')
}

export async function follow({ terminal, entries, names, options, printed }: Followed): Promise<void> {
  const undo = terminal.onInterrupt(() => void entries.return())
  const { json = false, count = Number.POSITIVE_INFINITY } = options
  const nameOf = (id: number) => names.get(id) ?? `#${id}`
  let values = 0
  try {
    for await (const entry of entries) {
      if (entry.kind === 'gap') terminal.note(describeGap(entry, nameOf))
      else
        await terminal.print(
          json ? jsonLines(nameOf(entry.metric), entry) : toLine(nameOf(entry.metric), entry, terminal.colors),
        )
      printed?.(entry)
      if (entry.kind === 'value' && ++values >= count) break
    }
  } finally {
    undo()
  }
}

function jsonLines(name: string, entry: ValueMessage): string {
  const committed = entry.transaction === 0 ? {} : { transaction: entry.transaction }
  return toJson(name, entry)
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

function positive(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It has to be a whole number above 0.')
}
