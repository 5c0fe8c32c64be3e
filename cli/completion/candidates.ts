/**
 * Looks up names that only the server knows, for a command line that is still being typed. It prompts for nothing, prints
 * nothing, and gives up after a moment.
 */
import { Readable } from 'node:stream'
import { Command } from 'commander'
import type { ClientClock } from '../../client/clock.ts'
import { type Consumer, type Value, valueToJson } from '../../client/index.ts'
import { printable } from '../format.ts'
import { type LoginOptions, resolveLogin, withLoginOptions } from '../login.ts'
import { findField, toRecords } from '../records.ts'
import type { Cli } from '../session.ts'
import type { lookedUpKinds } from './tree.ts'

export type LookedUpKind = (typeof lookedUpKinds)[number]

const DEADLINE_MS = 1_000
/** Nobody could choose from more. */
const MAX_NAMES = 1_000

/** `words` are those typed after the program's name; the last one may be incomplete. Never rejects. */
export async function lookUpNames(
  { terminal, connect }: Cli,
  clock: ClientClock,
  kind: LookedUpKind,
  words: readonly string[],
): Promise<readonly string[]> {
  const abort = new AbortController()
  const late = new Promise<readonly string[]>((resolve) => {
    abort.signal.addEventListener('abort', () => resolve([]))
  })
  const timer = clock.setTimeout(() => abort.abort(), DEADLINE_MS)
  const silent = {
    ...terminal,
    input: Readable.from([]),
    note: () => {},
    askSecret: () => Promise.reject(new Error('completion does not prompt')),
  }
  const lookUp = async (): Promise<readonly string[]> => {
    const { url, credentials, transport } = await resolveLogin(loginOptions(words), silent)
    const options = { ...transport, reconnect: false, deadlineMs: DEADLINE_MS, signal: abort.signal, clock }
    const consumer = await connect(url, credentials, options)
    abort.signal.addEventListener('abort', () => void consumer.close())
    try {
      const names = await NAMES[kind](consumer, words.at(-1) ?? '')
      // Names that cannot be written as one word are left out: they can be typed as a pattern.
      return names.filter((name) => name !== '' && name === printable(name))
    } finally {
      await consumer.close()
    }
  }
  try {
    return await Promise.race([lookUp(), late])
  } catch {
    return []
  } finally {
    timer.cancel()
    abort.abort()
  }
}

const NAMES: Readonly<Record<LookedUpKind, (consumer: Consumer, prefix: string) => Promise<readonly string[]>>> = {
  async metric(consumer, prefix) {
    if (prefix.includes('*')) return []
    return column((await consumer.query('producer.metrics', { match: `${prefix}*`, limit: MAX_NAMES })).value, 'name')
  },
  async control(consumer) {
    return column((await consumer.query('producer.controls')).value, 'name')
  },
  async sensor(consumer) {
    return column((await consumer.query('producer.sensors')).value, 'name')
  },
  async channel(consumer) {
    const ids = column((await consumer.query('producer.channels')).value, 'channel')
    return ids.filter((id) => id !== String(consumer.channel))
  },
}

/** One field of each record, unformatted. */
function column(answer: Value, name: string): string[] {
  const records = toRecords(answer)?.records ?? []
  return records.flatMap((record) => findField(record, name) ?? []).map((field) => String(valueToJson(field)))
}

/** Parses the login options as the commands do. */
function loginOptions(words: readonly string[]): LoginOptions {
  const command = withLoginOptions(new Command())
  command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .allowUnknownOption()
    .parseOptions([...words])
  return command.opts()
}
