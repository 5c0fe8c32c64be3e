/**
 * Secrets of the whole suite, looked for wherever a server writes something down: every password, token and secret that a
 * raw peer sends is remembered, and must stand in no line of the log, in no detail of a response, and in no record of the audit log.
 */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { commandName, commands, readCommand } from '../../protocol/monitor/commands.ts'

const SECRET_ARGUMENTS: ReadonlySet<string> = new Set(['password', 'secret', 'token', 'hash'])
/** Shorter ones stand in ordinary words. */
const MIN_LENGTH = 8

/** The secrets in a command frame, as text. What is no whole frame has none. */
export function secretsIn(frame: Uint8Array): string[] {
  try {
    const reader = new XdrReader(frame)
    const length = reader.uint32()
    if (length !== frame.length - 4) return []
    const name = commandName(reader.uint32())
    reader.uint32()
    if (name === undefined) return []
    const values = readCommand(commands[name], reader)
    return (name === 'AUTH' ? ofAuth(values) : ofArguments(values)).filter((text) => text.length >= MIN_LENGTH)
  } catch {
    return []
  }
}

function ofAuth(values: Record<string, unknown>): string[] {
  const data = Buffer.from(values['data'] as Uint8Array)
  if (values['method'] === 'token') return [data.toString()]
  if (values['method'] !== 'password') return []
  const reader = new XdrReader(data)
  reader.string()
  return [reader.string()]
}

function ofArguments(values: Record<string, unknown>): string[] {
  const list = (values['args'] ?? []) as ArgumentList
  return list
    .filter(({ name }) => SECRET_ARGUMENTS.has(name))
    .map(({ value }) => (value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)))
}

/** Where one of the secrets stands, as it is, in base64 or in hexadecimal; undefined if nowhere. */
export function firstLeak(lines: Iterable<string>, secrets: Iterable<string>): string | undefined {
  const forms = [...secrets].flatMap((secret) => {
    const bytes = Buffer.from(secret)
    return [secret, JSON.stringify(secret).slice(1, -1), bytes.toString('base64'), bytes.toString('hex')]
  })
  for (const line of lines) {
    const leaked = forms.find((form) => line.includes(form))
    if (leaked !== undefined) return `"${leaked}" in: ${line}`
  }
  return undefined
}
