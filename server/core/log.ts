/**
 * The log: JSON lines on standard error. Whatever stands under a key named like a secret is masked, at any depth;
 * text inside a message is not, so secrets must not be put there.
 */
import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

const SECRET_KEY = /"(password|secret|token|data)":/i

/** `level` is `config.log.level`; `to` is for tests. */
export function createLogger(level: string, to: DestinationStream = destination(2)): Logger {
  return pino({ level }, { write: (line) => to.write(masked(line)) })
}

/**
 * On the finished line, since pino's own `redact` ends at a fixed depth and throws where a wildcard meets a Buffer, and
 * its formatters do not see what a child logger was made with. A Buffer's bytes stand under `data` and go too.
 */
function masked(line: string): string {
  if (!SECRET_KEY.test(line)) return line
  const mask = (key: string, value: unknown) => (SECRET_KEY.test(`"${key}":`) ? '[masked]' : value)
  return `${JSON.stringify(JSON.parse(line), mask)}\n`
}
