/**
 * `cinnabar history import`: samples of a text, with their times, into the history. The text goes to the server in parts of whole lines;
 * each part is stored, or nothing of it. What was stored before stays, and the same text again changes nothing.
 */
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { type Consumer, StatusError } from '../../client/index.ts'
import { counted } from '../confirm.ts'
import { checkOutcome, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatCount, jsonText } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { fieldNumber, fieldsOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'

const CONTROL = 'history.import'
const STDIN = '-'
/** What one EXECUTE has at most, and what of a frame is for the rest of it. */
const PART_BYTES = 256 << 10
const REST_BYTES = 4 << 10
/** What is said of one family; if it is longer, parts without its beginning have it as one of which nothing is said. */
const MAX_REPEATED_BYTES = 8 << 10
const MAX_LINE_BYTES = 16_384
const NEWLINE = 0x0a
const END = '# EOF'
const ENDED = /(^|\n)# EOF\s*$/
const PROGRESS_MS = 1_000
/** While others import, or the controls of a minute are used up. */
const NOT_NOW: readonly unknown[] = ['BUSY', 'QUOTA_EXCEEDED']
const AGAIN_MS = 1_000
const MOST_ATTEMPTS = 90

const AFTER_IMPORT = `
The text is OpenMetrics in which each sample has its time, as \`history export\` writes it: it ends with \`# EOF\`. Samples are stored
at their own times, also below those that are there; one with the time of another of its series takes its place. So the same import
again changes nothing, and goes on where another one was cut off. What is older than samples are kept is counted, and not stored.
What the text says of a metric, its type, help and unit, is kept if nothing else is known of it.`

interface ImportOptions extends LoginOptions, JsonOptions {
  readonly tenant?: string
}

/** A part of the text. */
interface Part {
  readonly text: string
  /** The number of its first line. */
  readonly line: number
  /** Lines of earlier parts that stand before it, each with its end: what they say of a family holds for its samples here, too. */
  readonly repeated: readonly string[]
}

export function addHistoryImport(
  history: Command,
  cli: Cli,
  wait: (ms: number) => Promise<unknown> = (ms) => pause(ms),
): void {
  const { terminal } = cli
  withLoginOptions(history.command('import'))
    .description('store the samples of a file in the history, at their own times; needs the role admin or a rule')
    .argument('<file>', 'OpenMetrics with times; - is the standard input')
    .option('--tenant <tenant>', "whose history; without it one's own, and for an admin also what belongs to no tenant")
    .option(...JSON_OPTION)
    .addHelpText('after', AFTER_IMPORT)
    .action((file: string, options: ImportOptions) => {
      const { tenant, json: isJson } = options
      // A file is opened when it is read: its errors come to whoever reads.
      const open = (): Readable => (file === STDIN ? terminal.input : createReadStream(file))
      const name = file === STDIN ? 'standard input' : file
      return withConsumer(cli, options, async (consumer) => {
        const counts = { stored: 0, too_old: 0, ahead: 0, refused: 0 }
        const progress = watched(terminal)
        try {
          const frameBytes = consumer.capabilities?.maxFrameBytes || PART_BYTES + REST_BYTES
          const most = Math.min(PART_BYTES, frameBytes - REST_BYTES)
          for await (const part of partsOf(open, name, most)) {
            const found = await importPart(consumer, part, { name, tenant, wait })
            for (const key of Object.keys(counts) as (keyof typeof counts)[]) counts[key] += found[key]
            progress.say(`${formatCount(counts.stored)} samples; line ${part.line}`)
          }
        } finally {
          progress.end()
        }
        await terminal.print(isJson ? jsonText(counts) : reportOf(counts))
      })
    })
}

type Counts = Readonly<Record<'stored' | 'too_old' | 'ahead' | 'refused', number>>

function reportOf({ stored, too_old, ahead, refused }: Counts): string {
  return [
    `${counted(stored, 'sample')} ${stored === 1 ? 'is' : 'are'} stored`,
    ...(too_old > 0 ? [`not stored, since older than samples are kept (\`history.keep\`): ${too_old}`] : []),
    ...(ahead > 0 ? [`not stored, since ahead of the clock of the server: ${ahead}`] : []),
    ...(refused > 0
      ? [
          `not stored, since over \`quota.history_series\` or of the server itself, which only an admin imports: ${refused}`,
        ]
      : []),
  ].join('\n')
}

interface ImportContext {
  readonly name: string
  readonly tenant: string | undefined
  readonly wait: (ms: number) => Promise<unknown>
}

async function importPart(consumer: Consumer, part: Part, { name, tenant, wait }: ImportContext): Promise<Counts> {
  const args = { text: part.repeated.join('') + part.text, ...(tenant !== undefined && { tenant }) }
  for (let attempt = 1; ; attempt++) {
    try {
      const outcome = await runControl(consumer, CONTROL, args)
      const [, line = '', problem] = /^line (\d+): (.*)$/s.exec(outcome.detail) ?? []
      if (problem !== undefined) {
        throw wrong(name, part.line - part.repeated.length + Number(line) - 1, problem, part.line)
      }
      checkOutcome(CONTROL, outcome)
      const record = fieldsOf(outcome.value)
      const count = (field: string): number => fieldNumber(record, field)
      return { stored: count('stored'), too_old: count('too_old'), ahead: count('ahead'), refused: count('refused') }
    } catch (error) {
      const isNotNow = error instanceof StatusError && NOT_NOW.includes(error.status)
      if (!isNotNow || attempt === MOST_ATTEMPTS) throw error
      await wait(AGAIN_MS)
    }
  }
}

/** `since`: the first line that is not stored. */
function wrong(name: string, line: number, problem: string, since: number): Failure {
  const before = since > 1 ? `\nWhat stands before line ${since} is stored; the same import again stores it once` : ''
  return new Failure(ExitCode.FAILED, `${name}:${line}: ${problem}${before}`)
}

/** Whole lines, up to the end of the text. Rejects with Failure. */
async function* partsOf(open: () => Readable, name: string, most: number): AsyncGenerator<Part> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let rest: Buffer = Buffer.alloc(0)
  let [line, isOver] = [1, false]
  let repeated: readonly string[] = []
  const partOf = (bytes: Buffer): Part => {
    const part = { text: textOf(decoder, bytes, name, line), line, repeated }
    if (isOver && part.text.trim() !== '') throw wrong(name, line, `a line after ${END}`, line)
    isOver ||= ENDED.test(part.text)
    repeated = lastComments(part.text) ?? repeated
    line += bytes.reduce((count, byte) => count + Number(byte === NEWLINE), 0)
    return part
  }
  for await (const chunk of readable(open(), name)) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const room = most - Buffer.byteLength(repeated.join(''))
      if (rest.length < room) break
      const end = rest.lastIndexOf(NEWLINE, room - 1) + 1
      if (end === 0) throw wrong(name, line, `a line has at most ${MAX_LINE_BYTES} bytes`, line)
      yield partOf(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  }
  if (rest.length > 0) yield partOf(rest)
  if (!isOver) throw wrong(name, line, `the text ends without ${END}: it was cut off`, line)
}

/** The last lines of a text that say something of a family and follow each other; undefined if there are none. */
function lastComments(text: string): readonly string[] | undefined {
  let start = lineOf(text, text.lastIndexOf('\n#') + 1)
  const end = text.indexOf('\n', start) + 1
  if (text[start] !== '#' || end === 0) return undefined
  while (start > 0) {
    const before = lineOf(text, start - 1)
    if (text[before] !== '#') break
    start = before
  }
  const block = text.slice(start, end)
  return Buffer.byteLength(block) > MAX_REPEATED_BYTES ? [] : block.split(/(?<=\n)(?=.)/)
}

/** Where the line begins in which a place is; the end of a line is part of it. */
function lineOf(text: string, place: number): number {
  return place === 0 ? 0 : text.lastIndexOf('\n', place - 1) + 1
}

async function* readable(input: Readable, name: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of input) yield Buffer.from(chunk)
  } catch (error) {
    throw new Failure(ExitCode.USAGE, `cannot read ${name}: ${(error as Error).message}`, { cause: error })
  }
}

function textOf(decoder: TextDecoder, bytes: Buffer, name: string, line: number): string {
  try {
    return decoder.decode(bytes)
  } catch (error) {
    throw new Failure(ExitCode.FAILED, `${name}: the text is not UTF-8, at line ${line} or after it`, { cause: error })
  }
}

interface Watched {
  say(text: string): void
  end(): void
}

/** What was said last, once a second, for people who watch. */
export function watched(terminal: Pick<Terminal, 'isWatched' | 'note'>): Watched {
  let last = ''
  const timer = setInterval(() => {
    if (terminal.isWatched && last !== '') terminal.note(`${last} …`)
  }, PROGRESS_MS)
  return {
    say: (text) => {
      last = text
    },
    end: () => clearInterval(timer),
  }
}
