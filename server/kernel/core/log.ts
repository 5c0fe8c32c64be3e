/**
 * The log, on standard error: readable lines on a terminal, else JSON lines, with the priority before each for journald. The
 * values of keys that are named like secrets are masked at any depth. Text inside a message is not masked, so a message must
 * never contain a secret.
 */
import { fstatSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

const SECRET_KEY = /"(password|secret|token|data)":/i
const STANDARD_ERROR = 2

export type LogFormat = 'json' | 'journal' | 'terminal'

/** Creates a log with the level `config.log.level`; tests hand in `to`. */
export function createLogger(level: string, to?: DestinationStream, format?: LogFormat): Logger {
  const formatted = FORMATS[format ?? (to === undefined ? formatOf(process.env) : 'json')]
  const stream = to ?? standardError()
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (word) => ({ level: word }) },
    },
    { write: (line) => stream.write(formatted(masked(line))) },
  )
}

/** Bytes that wait to be written. */
const MAX_WAITING = 1 << 20

/** A terminal that has hung up takes nothing more: lines are lost then, and the server goes on. */
function standardError(): DestinationStream {
  return destination({ dest: STANDARD_ERROR, sync: true, maxLength: MAX_WAITING }).on('error', () => {})
}

/** systemd names in JOURNAL_STREAM the device and inode that lead to journald; standard error may lead elsewhere. */
function formatOf({ JOURNAL_STREAM }: NodeJS.ProcessEnv): LogFormat {
  if (isatty(STANDARD_ERROR)) return 'terminal'
  if (!JOURNAL_STREAM) return 'json'
  const { dev, ino } = fstatSync(STANDARD_ERROR)
  return JOURNAL_STREAM === `${dev}:${ino}` ? 'journal' : 'json'
}

interface Entry {
  readonly level: string
  readonly time: string
  readonly msg?: string
  /** An error; or whatever else was thrown, which may be anything. */
  readonly err?: unknown
}

/** What a line becomes, which ends in a newline. */
const FORMATS: Readonly<Record<LogFormat, (line: string) => string>> = {
  json: (line) => line,
  journal: (line) => `<${PRIORITIES[(JSON.parse(line) as Entry).level] ?? 6}>${line}`,
  terminal: (line) => readable(JSON.parse(line) as Entry),
}

/** sd-daemon(3) */
const PRIORITIES: Readonly<Record<string, number>> = { trace: 7, debug: 7, info: 6, warn: 4, error: 3, fatal: 2 }

/** Local time, level, message, and the other fields as name=value; below them the stack of an error. */
function readable({ level, time, msg = '', err, ...fields }: Entry): string {
  const at = new Date(time)
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
  const values = Object.entries(fields).map(([name, value]) => `${name}=${fieldText(value)}`)
  const { stack: own, message } = Object(err) as { readonly stack?: unknown; readonly message?: unknown }
  const stack = err === undefined ? undefined : [own, message, fieldText(err)].find((text) => typeof text === 'string')
  const lines = stack === undefined ? [] : stack.split('\n').map((line) => `    ${escaped(line.trim())}`)
  return `${[[clock, level.toUpperCase().padEnd(5), escaped(msg), ...values].join(' '), ...lines].join('\n')}\n`
}

function fieldText(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:/@+-]+$/.test(value)) return value
  return escaped(JSON.stringify(value))
}

const CONTROLS_OR_UNSEEN =
  /[\p{Cc}\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]/gu

/** Peers choose some of the text: it must not control the terminal. */
function escaped(text: string): string {
  return text.replaceAll(CONTROLS_OR_UNSEEN, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/**
 * Masks the finished line, because pino's own `redact` stops at a fixed depth and throws if a wildcard meets a Buffer, and
 * its formatters do not see the bindings of child loggers. The bytes of a Buffer are under `data` and are masked too.
 */
function masked(line: string): string {
  if (!SECRET_KEY.test(line)) return line
  const mask = (key: string, value: unknown) => (SECRET_KEY.test(`"${key}":`) ? '[masked]' : value)
  return `${JSON.stringify(JSON.parse(line), mask)}\n`
}
