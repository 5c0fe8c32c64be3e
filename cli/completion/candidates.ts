/**
 * Names that only the server knows, for a command line that is still being typed. Nobody is asked for anything, nothing is
 * said, and what is not there in a moment is not waited for.
 */
import { Readable } from 'node:stream'
import { Command } from 'commander'
import type { ClientClock } from '../../client/clock.ts'
import { type Consumer, type Value, valueToJson } from '../../client/index.ts'
import { type LoginOptions, resolveLogin, withLoginOptions } from '../login.ts'
import { printable } from '../output/text.ts'
import { fieldOf, recordsOf } from '../records.ts'
import type { Cli } from '../session.ts'
import type { askedKinds } from './tree.ts'

export type AskedKind = (typeof askedKinds)[number]

const DEADLINE_MS = 1_000
/** More can neither be looked at nor chosen from. */
const MAX_NAMES = 1_000

/** `words`: what has been typed behind the program's name, the last one as far as it goes. Never rejects. */
export async function candidates(
  { terminal, connect }: Cli,
  clock: ClientClock,
  kind: AskedKind,
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
    askSecret: () => Promise.reject(new Error('nobody is asked')),
  }
  const ask = async (): Promise<readonly string[]> => {
    const { url, credentials, link } = await resolveLogin(loginOptions(words), silent)
    const options = { ...link, reconnect: false, deadlineMs: DEADLINE_MS, signal: abort.signal, clock }
    const consumer = await connect(url, credentials, options)
    abort.signal.addEventListener('abort', () => void consumer.close())
    try {
      const names = await NAMES[kind](consumer, words.at(-1) ?? '')
      // What cannot be written on a command line in one piece is left to be typed as a pattern.
      return names.filter((name) => name !== '' && name === printable(name))
    } finally {
      await consumer.close()
    }
  }
  try {
    return await Promise.race([ask(), late])
  } catch {
    return []
  } finally {
    timer.cancel()
    abort.abort()
  }
}

const NAMES: Readonly<Record<AskedKind, (consumer: Consumer, begun: string) => Promise<readonly string[]>>> = {
  async metric(consumer, begun) {
    if (begun.includes('*')) return []
    return column((await consumer.query('producer.metrics', { match: `${begun}*`, limit: MAX_NAMES })).value, 'name')
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

/** One field of each record, as it came. */
function column(answer: Value, name: string): string[] {
  const records = recordsOf(answer)?.records ?? []
  return records.flatMap((record) => fieldOf(record, name) ?? []).map((field) => String(valueToJson(field)))
}

/** Where and as whom, read as the commands read it. */
function loginOptions(words: readonly string[]): LoginOptions {
  const command = withLoginOptions(new Command())
  command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .allowUnknownOption()
    .parseOptions([...words])
  return command.opts()
}
