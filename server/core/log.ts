/**
 * The log: JSON lines on standard error. The values of keys that are named like secrets are masked at any depth. Text inside
 * a message is not masked, so a message must never contain a secret.
 */
import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

const SECRET_KEY = /"(password|secret|token|data)":/i

/** Creates a log with the level `config.log.level`; tests hand in `to`. */
export function createLogger(level: string, to: DestinationStream = standardError()): Logger {
  return pino({ level }, { write: (line) => to.write(masked(line)) })
}

/** Bytes that wait to be written. */
const MAX_WAITING = 1 << 20

/** A terminal that has hung up takes nothing more: lines are lost then, and the server goes on. */
function standardError(): DestinationStream {
  return destination({ dest: 2, sync: true, maxLength: MAX_WAITING }).on('error', () => {})
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
